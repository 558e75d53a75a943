//! Values to and from a database, in the few types of the schema.

use std::error::Error;

use bytes::BytesMut;
use time::Date;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::StoreError;

/// What a column holds or a `?` stands for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Integer(i64),
    Text(String),
    Date(Date),
}

impl Value {
    /// What PostgreSQL is to read it as, where nothing else says so.
    pub fn postgres_type(&self) -> Type {
        match self {
            Self::Null => Type::UNKNOWN,
            Self::Integer(_) => Type::INT8,
            Self::Text(_) => Type::VARCHAR,
            Self::Date(_) => Type::DATE,
        }
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<Date> for Value {
    fn from(value: Date) -> Self {
        Self::Date(value)
    }
}

/// One row of a result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row(pub Vec<Value>);

impl Row {
    /// The whole number in `column`, from 0.
    pub fn integer(&self, column: usize) -> Result<i64, StoreError> {
        match self.0.get(column) {
            Some(Value::Integer(value)) => Ok(*value),
            _ => Err(StoreError::Column {
                column,
                want: "a whole number",
            }),
        }
    }

    /// The text in `column`, from 0.
    pub fn text(&self, column: usize) -> Result<&str, StoreError> {
        match self.0.get(column) {
            Some(Value::Text(value)) => Ok(value),
            _ => Err(StoreError::Column {
                column,
                want: "text",
            }),
        }
    }

    /// The whole number in `column`. `None` if that is null.
    pub fn optional_integer(&self, column: usize) -> Result<Option<i64>, StoreError> {
        match self.0.get(column) {
            Some(Value::Null) => Ok(None),
            _ => self.integer(column).map(Some),
        }
    }
}

/// The width on the wire follows the column's type.
impl ToSql for Value {
    fn to_sql(
        &self,
        column: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(value) if *column == Type::INT2 => {
                i16::try_from(*value)?.to_sql(column, out)
            }
            Self::Integer(value) if *column == Type::INT4 => {
                i32::try_from(*value)?.to_sql(column, out)
            }
            Self::Integer(value) => value.to_sql(column, out),
            Self::Text(value) => value.to_sql(column, out),
            Self::Date(value) => value.to_sql(column, out),
        }
    }

    fn accepts(column: &Type) -> bool {
        <i64 as ToSql>::accepts(column)
            || <Date as ToSql>::accepts(column)
            || is_narrow(column)
            || <String as ToSql>::accepts(column)
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Value {
    fn from_sql(column: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        if *column == Type::INT2 {
            return Ok(Self::Integer(i16::from_sql(column, raw)?.into()));
        }
        if *column == Type::INT4 {
            return Ok(Self::Integer(i32::from_sql(column, raw)?.into()));
        }
        if *column == Type::INT8 {
            return Ok(Self::Integer(i64::from_sql(column, raw)?));
        }
        if *column == Type::DATE {
            return Ok(Self::Date(Date::from_sql(column, raw)?));
        }
        Ok(Self::Text(String::from_sql(column, raw)?))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self::Null)
    }

    fn accepts(column: &Type) -> bool {
        <Self as ToSql>::accepts(column)
    }
}

fn is_narrow(column: &Type) -> bool {
    *column == Type::INT2 || *column == Type::INT4
}

impl From<Value> for mysql_async::Value {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Integer(value) => Self::Int(value),
            Value::Text(value) => Self::Bytes(value.into_bytes()),
            Value::Date(date) => Self::Date(
                u16::try_from(date.year()).unwrap_or(0),
                date.month().into(),
                date.day(),
                0,
                0,
                0,
                0,
            ),
        }
    }
}

impl TryFrom<mysql_async::Row> for Row {
    type Error = StoreError;

    fn try_from(row: mysql_async::Row) -> Result<Self, StoreError> {
        let values = row.unwrap().into_iter().enumerate();
        let values = values.map(|(column, value)| from_mariadb(column, value));
        values.collect::<Result<_, _>>().map(Self)
    }
}

fn from_mariadb(column: usize, value: mysql_async::Value) -> Result<Value, StoreError> {
    let unread = StoreError::Column {
        column,
        want: "a whole number, text or a date",
    };
    match value {
        mysql_async::Value::NULL => Ok(Value::Null),
        mysql_async::Value::Int(value) => Ok(Value::Integer(value)),
        mysql_async::Value::UInt(value) => value.try_into().map(Value::Integer).map_err(|_| unread),
        mysql_async::Value::Bytes(bytes) => String::from_utf8(bytes)
            .map(Value::Text)
            .map_err(|_| unread),
        mysql_async::Value::Date(year, month, day, ..) => time::Month::try_from(month)
            .and_then(|month| Date::from_calendar_date(year.into(), month, day))
            .map(Value::Date)
            .map_err(|_| unread),
        _ => Err(unread),
    }
}
