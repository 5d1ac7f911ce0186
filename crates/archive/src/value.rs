//! Values and rows of both databases.

use crate::error::DatabaseFault;

/// A value of a row or a parameter. Both databases have these types only.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Integer(value.into())
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        Self::Blob(value)
    }
}

impl From<&str> for Value {
    /// PostgreSQL has no NUL in texts.
    fn from(value: &str) -> Self {
        Self::Text(value.replace('\0', "\u{fffd}"))
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        value.as_str().into()
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A row of a result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DatabaseRow(pub(crate) Vec<Value>);

impl DatabaseRow {
    fn take(&mut self, column: usize) -> Value {
        self.0.get_mut(column).map_or(Value::Null, |value| std::mem::replace(value, Value::Null))
    }

    /// The integer in a column.
    pub(crate) fn integer(&mut self, column: usize) -> Result<i64, DatabaseFault> {
        match self.take(column) {
            Value::Integer(value) => Ok(value),
            other => Err(unexpected(column, &other)),
        }
    }

    /// The number in a column, if there is one.
    pub(crate) fn real(&mut self, column: usize) -> Result<Option<f64>, DatabaseFault> {
        match self.take(column) {
            Value::Real(value) => Ok(Some(value)),
            Value::Null => Ok(None),
            other => Err(unexpected(column, &other)),
        }
    }

    /// The text in a column.
    pub(crate) fn text(&mut self, column: usize) -> Result<String, DatabaseFault> {
        match self.take(column) {
            Value::Text(value) => Ok(value),
            other => Err(unexpected(column, &other)),
        }
    }

    /// The text in a column, if there is one.
    pub(crate) fn optional_text(&mut self, column: usize) -> Result<Option<String>, DatabaseFault> {
        match self.take(column) {
            Value::Text(value) => Ok(Some(value)),
            Value::Null => Ok(None),
            other => Err(unexpected(column, &other)),
        }
    }

    /// The bytes in a column.
    pub(crate) fn blob(&mut self, column: usize) -> Result<Vec<u8>, DatabaseFault> {
        match self.take(column) {
            Value::Blob(value) => Ok(value),
            other => Err(unexpected(column, &other)),
        }
    }
}

fn unexpected(column: usize, found: &Value) -> DatabaseFault {
    let kind = match found {
        Value::Null => "nothing",
        Value::Integer(_) => "an integer",
        Value::Real(_) => "a real number",
        Value::Text(_) => "text",
        Value::Blob(_) => "bytes",
    };
    DatabaseFault::Content(format!("column {column} of a row has {kind}"))
}
