//! Places for archives of tests, in both databases.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use linerate_archive::{Archive, Recorder, open};
use linerate_model::Event;
use postgres::{Client, NoTls};

use crate::folder::ArchiveTestFolder;
use crate::postgres_server::PostgresServer;

/// Where a test has its archive.
pub(crate) enum TestPlace {
    /// A file, removed with the folder.
    File(ArchiveTestFolder),
    /// A database of its own on the server of this test program.
    Server(String),
}

/// Makes a test of each function, with an archive in each database.
macro_rules! on_both_databases {
    ($($test:ident),* $(,)?) => {
        mod in_sqlite {
            $(#[test] fn $test() { super::$test(&crate::place::TestPlace::file()); })*
        }
        mod in_postgres {
            $(#[test] #[ignore = "needs PostgreSQL"] fn $test() { super::$test(&crate::place::TestPlace::server()); })*
        }
    };
}
pub(crate) use on_both_databases;

impl TestPlace {
    pub(crate) fn file() -> Self {
        Self::File(ArchiveTestFolder::new())
    }

    pub(crate) fn server() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("t{}", MADE.fetch_add(1, Ordering::Relaxed));
        let server = shared_server();
        let mut client = Client::connect(&server.url("postgres"), NoTls).unwrap();
        client.batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        Self::Server(server.url(&name))
    }

    /// The location as a user would give it.
    pub(crate) fn location(&self) -> String {
        match self {
            Self::File(folder) => folder.file("new/folder/archive.sqlite").display().to_string(),
            Self::Server(url) => url.clone(),
        }
    }

    pub(crate) fn open(&self) -> Archive {
        open(&self.location()).unwrap()
    }

    pub(crate) fn record_all(&self, events: &[Event]) {
        let mut recorder = Recorder::new(self.open());
        for event in events {
            recorder.on(event).unwrap();
        }
        recorder.flush().unwrap();
    }

    /// Carries out statements as another program would.
    pub(crate) fn execute(&self, sql: &str) {
        match self {
            Self::File(_) => rusqlite::Connection::open(self.location()).unwrap().execute_batch(sql).unwrap(),
            Self::Server(url) => Client::connect(url, NoTls).unwrap().batch_execute(sql).unwrap(),
        }
    }

    /// The number that an expression gives.
    pub(crate) fn number(&self, sql: &str) -> f64 {
        let sql = format!("SELECT CAST(({sql}) AS DOUBLE PRECISION)");
        match self {
            Self::File(_) => rusqlite::Connection::open(self.location())
                .unwrap()
                .query_row(&sql, [], |row| row.get(0))
                .unwrap(),
            Self::Server(url) => Client::connect(url, NoTls).unwrap().query_one(&sql, &[]).unwrap().get(0),
        }
    }
}

/// The one that all tests of this program share. It ends with the program.
fn shared_server() -> &'static PostgresServer {
    static SERVER: OnceLock<PostgresServer> = OnceLock::new();
    SERVER.get_or_init(|| {
        let (send, started) = std::sync::mpsc::channel();
        // The server ends with the thread that started it, and threads of tests end before the program.
        std::thread::spawn(move || {
            let (server, mut process) = PostgresServer::start();
            send.send(server).unwrap();
            let _ = process.wait();
        });
        started.recv().unwrap()
    })
}
