//! Serialises quantities as plain numbers in JSON. The field's name carries the unit (`_bps`, `_bytes`, `_ns`).

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Bitrate, Bytes, Ratio, Span, Timestamp};

macro_rules! schema {
    ($type:ident, $json:literal, $unit:literal) => {
        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": $json, "minimum": 0, "description": $unit })
            }
        }
    };
}

macro_rules! counts {
    ($($type:ident, $get:ident, $make:ident, $unit:literal;)*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_u64(self.$get())
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                u64::deserialize(deserializer).map(Self::$make)
            }
        }

        schema!($type, "integer", $unit);
    )*};
}

macro_rules! reals {
    ($($type:ident, $get:ident, $make:ident, $unit:literal;)*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_f64(self.$get())
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = f64::deserialize(deserializer)?;
                Self::$make(value).ok_or_else(|| D::Error::custom(format!("{value} is not {}", $unit)))
            }
        }

        schema!($type, "number", $unit);
    )*};
}

counts! {
    Bytes, get, new, "bytes";
    Span, as_ns, from_ns, "nanoseconds";
    Timestamp, as_ns, from_ns, "nanoseconds since the start of the run";
}

reals! {
    Bitrate, bps, from_bps, "bits per second, finite and not negative";
    Ratio, get, new, "a ratio, finite and not negative; 1 is the whole";
}
