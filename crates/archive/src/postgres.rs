//! An archive in a PostgreSQL database.

mod password_file;
mod tls;
mod url;

use std::collections::BTreeMap;
use std::error::Error;
#[cfg(unix)]
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use postgres::config::{Host, SslMode};
use postgres::types::{FromSql, IsNull, ToSql, Type, private::BytesMut};
use postgres::{Client, Config, NoTls, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::ArchiveError;
use crate::error::DatabaseFault;
use crate::location::without_password;
use crate::migrate::postgres::migrate;
use crate::postgres::password_file::PasswordNeed;
use crate::postgres::url::{EncryptionMode, EncryptionSettings};
use crate::value::{DatabaseRow, Value};

/// How long a connection may take. A measurement waits for it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long data may remain without acknowledgement before the connection is given up.
const USER_TIMEOUT: Duration = Duration::from_secs(5);
/// Prepared statements that are kept. Those that list runs have one text for each number of runs.
const KEPT_STATEMENTS: usize = 64;
/// Settings of a connection. Transactions take milliseconds; whoever waits longer has met a blocked server.
const SETTINGS: &str =
    "SET lock_timeout = '2s'; SET statement_timeout = '30s'; SET client_min_messages = 'warning'";

/// Folders of Unix sockets that are libpq's default on some system. In the file of passwords they are `localhost`.
#[cfg(unix)]
const DEFAULT_SOCKET_FOLDERS: [&str; 3] = ["/tmp", "/run/postgresql", "/var/run/postgresql"];

/// The password that libpq's file has for this connection.
fn password_of_file(config: &Config, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let name = |host: &Host| match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(folder) if DEFAULT_SOCKET_FOLDERS.iter().any(|default| folder == Path::new(default)) => {
            "localhost".to_owned()
        }
        #[cfg(unix)]
        Host::Unix(folder) => folder.display().to_string(),
    };
    let mut hosts: Vec<String> = config.get_hosts().iter().map(name).collect();
    if hosts.is_empty() {
        hosts = config.get_hostaddrs().iter().map(ToString::to_string).collect();
    }
    let names = ["USER", "LOGNAME", "USERNAME"];
    let user = config.get_user().map(str::to_owned).or_else(|| names.into_iter().find_map(&variable))?;
    let (ports, database) = (config.get_ports(), config.get_dbname()?);
    password_file::find(PasswordNeed { hosts: &hosts, ports, database, user: &user }, variable)
}

/// A connection to a PostgreSQL server, made again when it was lost.
pub(crate) struct PostgresDatabase {
    shown: String,
    config: Config,
    /// Absent if connections are not encrypted.
    encryption: Option<MakeRustlsConnect>,
    client: Option<Client>,
    /// Of the connection, by their text: to prepare one takes as long as to carry it out.
    statements: BTreeMap<String, Statement>,
    /// Whether a transaction is open. A connection that is lost then is not made again before its end: what came
    /// before would be missing in the new one.
    in_transaction: bool,
}

impl PostgresDatabase {
    /// Connects to the database at a URL, and creates the tables if they are missing. `variable` reads libpq's variables
    /// of the environment, which are used where the URL is silent.
    pub(crate) fn open(url: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self, ArchiveError> {
        let shown = without_password(url);
        let wrong = |why: String| ArchiveError::Unsupported { url: without_password(url), why };
        let (rest, settings) = EncryptionSettings::take(url, &variable).map_err(wrong)?;
        let mut config = Config::from_str(&rest).map_err(|error| {
            let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            wrong(format!("{cause}; write postgres://USER:PASSWORD@HOST:PORT/DATABASE"))
        })?;
        if config.get_dbname().is_none() {
            return Err(wrong("it names no database; write postgres://HOST/DATABASE".to_owned()));
        }
        if config.get_password().is_none()
            && let Some(password) = variable("PGPASSWORD").or_else(|| password_of_file(&config, &variable))
        {
            config.password(password);
        }
        // As with libpq, Unix sockets are not encrypted, whatever is wanted elsewhere.
        let is_local = config.get_hosts().iter().all(|host| !matches!(host, Host::Tcp(_)));
        let encryption = if is_local { None } else { tls::connector(&settings).map_err(wrong)? };
        config.ssl_mode(match settings.mode {
            _ if encryption.is_none() => SslMode::Disable,
            EncryptionMode::Disable | EncryptionMode::Prefer => SslMode::Prefer,
            EncryptionMode::Require | EncryptionMode::VerifyCa | EncryptionMode::VerifyFull => {
                SslMode::Require
            }
        });
        config.application_name("linerate").tcp_user_timeout(USER_TIMEOUT);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        let mut database = Self {
            shown,
            config,
            encryption,
            client: None,
            statements: BTreeMap::new(),
            in_transaction: false,
        };
        let connected = database.client().map(drop);
        connected.map_err(|fault| ArchiveError::of(&database.shown, fault))?;
        migrate(&mut database)?;
        Ok(database)
    }

    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// The connection, which is made if there is none.
    pub(crate) fn client(&mut self) -> Result<&mut Client, DatabaseFault> {
        let in_transaction = self.in_transaction;
        match self.client.take().filter(|client| in_transaction || !client.is_closed()) {
            Some(client) => Ok(self.client.insert(client)),
            None => {
                let mut client = match &self.encryption {
                    Some(encryption) => self.config.connect(encryption.clone())?,
                    None => self.config.connect(NoTls)?,
                };
                client.batch_execute(SETTINGS)?;
                self.statements.clear();
                Ok(self.client.insert(client))
            }
        }
    }

    /// The prepared statement of a text.
    fn prepared(&mut self, sql: &str) -> Result<Statement, DatabaseFault> {
        // Connects first: statements belong to a connection.
        self.client()?;
        // Parameters are `$1` here. No statement of the archive has a question mark elsewhere.
        let text = sql.replace('?', "$");
        if let Some(statement) = self.statements.get(&text) {
            return Ok(statement.clone());
        }
        let statement = self.client()?.prepare(&text)?;
        if self.statements.len() >= KEPT_STATEMENTS {
            self.statements.clear();
        }
        self.statements.insert(text, statement.clone());
        Ok(statement)
    }

    pub(crate) fn query(
        &mut self,
        sql: &str,
        parameters: &[Value],
    ) -> Result<Vec<DatabaseRow>, DatabaseFault> {
        let parameters: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|value| value as _).collect();
        let statement = self.prepared(sql)?;
        let rows = self.client()?.query(&statement, &parameters)?;
        rows.iter().map(row_of).collect()
    }

    pub(crate) fn execute(&mut self, sql: &str, parameters: &[Value]) -> Result<u64, DatabaseFault> {
        let parameters: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|value| value as _).collect();
        let statement = self.prepared(sql)?;
        Ok(self.client()?.execute(&statement, &parameters)?)
    }

    /// Begins a transaction with a `BEGIN` statement.
    pub(crate) fn begin(&mut self, begin: &str) -> Result<(), DatabaseFault> {
        self.client()?.batch_execute(begin)?;
        self.in_transaction = true;
        Ok(())
    }

    /// Ends the transaction with `COMMIT` or `ROLLBACK`.
    pub(crate) fn end(&mut self, sql: &str) -> Result<(), DatabaseFault> {
        let done = self.statement(sql);
        self.in_transaction = false;
        done
    }

    pub(crate) fn statement(&mut self, sql: &str) -> Result<(), DatabaseFault> {
        Ok(self.client()?.batch_execute(sql)?)
    }

    pub(crate) fn vacuum(&mut self) -> Result<(), DatabaseFault> {
        self.statement("SET statement_timeout = 0")?;
        let done = self.statement("VACUUM (ANALYZE) run").and_then(|()| {
            self.statement("VACUUM (ANALYZE) log_part")?;
            self.statement("VACUUM (ANALYZE) flow")
        });
        let _ = self.statement(SETTINGS);
        done
    }
}

impl std::fmt::Debug for PostgresDatabase {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresDatabase").field("shown", &self.shown).finish_non_exhaustive()
    }
}

fn row_of(row: &Row) -> Result<DatabaseRow, DatabaseFault> {
    let values = (0..row.len()).map(|column| row.try_get::<_, Option<Value>>(column));
    let values = values.map(|value| value.map(|value| value.unwrap_or(Value::Null)));
    Ok(DatabaseRow(values.collect::<Result<_, _>>()?))
}

impl ToSql for Value {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(value) => value.to_sql(ty, out),
            Self::Real(value) => value.to_sql(ty, out),
            Self::Text(value) => value.to_sql(ty, out),
            Self::Blob(value) => value.to_sql(ty, out),
        }
    }

    /// The server rejects a value of another type than the statement has there.
    fn accepts(_: &Type) -> bool {
        true
    }

    postgres::types::to_sql_checked!();
}

impl<'a> FromSql<'a> for Value {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        match *ty {
            Type::INT8 => i64::from_sql(ty, raw).map(Self::Integer),
            Type::INT4 => i32::from_sql(ty, raw).map(|value| Self::Integer(value.into())),
            Type::BOOL => bool::from_sql(ty, raw).map(|value| Self::Integer(value.into())),
            Type::FLOAT8 => f64::from_sql(ty, raw).map(Self::Real),
            Type::BYTEA => Vec::from_sql(ty, raw).map(Self::Blob),
            _ => String::from_sql(ty, raw).map(Self::Text),
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::INT8, Type::INT4, Type::BOOL, Type::FLOAT8, Type::BYTEA, Type::TEXT, Type::VARCHAR]
            .contains(ty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_cannot_work_says_what_to_write() {
        for (url, part) in [
            ("postgres://db.example:port/x", "postgres://USER:PASSWORD@HOST:PORT/DATABASE"),
            ("postgres://db.example", "names no database"),
            ("postgres://me:secret@db.example/x?sslmode=verify", "sslmode cannot be 'verify'"),
            ("postgres://me:secret@db.example/x?sslrootcert=/no/file&sslmode=verify-ca", "/no/file"),
        ] {
            let error = PostgresDatabase::open(url, |_| None).unwrap_err();
            assert!(matches!(error, ArchiveError::Unsupported { .. }), "{error:?}");
            assert!(error.to_string().contains(part) && !error.to_string().contains("secret"), "{error}");
        }
    }
}
