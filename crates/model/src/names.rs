//! Names that logic matches on and results print: an enum, declared with the text of each name.
//!
//! A file of a newer version, or from elsewhere, may hold a name that is not declared. It is kept as it is, so that
//! one name does not make a whole log unreadable.

use crate::foreign_text::ForeignText;

/// A name that this version does not know. It is never the text of a declared name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UnknownName(ForeignText);

impl UnknownName {
    /// Only for enums of names, which look among their own names first.
    pub(crate) fn new(name: ForeignText) -> Self {
        Self(name)
    }

    /// The name, safe to print.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// Lets an enum with a `name`, made `From` a [`ForeignText`], be printed, written and read as that name.
macro_rules! name_traits {
    ($Enum:ident) => {
        impl std::fmt::Display for $Enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.name())
            }
        }

        impl serde::Serialize for $Enum {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $Enum {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <$crate::ForeignText as serde::Deserialize>::deserialize(deserializer).map(Self::from)
            }
        }
    };
}

/// Declares an enum of names: its variants, each with its documentation and its text, and `Other`.
///
/// The text is what `name` and `Display` give, what JSON holds, and what the schema lists.
macro_rules! names {
    ($(#[$meta:meta])* pub enum $Enum:ident { $($(#[doc = $doc:literal])+ $Variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum $Enum {
            $($(#[doc = $doc])+ $Variant,)+
            /// A name that this version does not know, in a file of a newer one or from elsewhere.
            Other($crate::names::UnknownName),
        }

        impl $Enum {
            /// Every declared name, in the order of declaration.
            pub const ALL: &[Self] = &[$(Self::$Variant),+];

            /// The name used in results.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$Variant => $text,)+
                    Self::Other(name) => name.as_str(),
                }
            }
        }

        impl From<$crate::ForeignText> for $Enum {
            fn from(name: $crate::ForeignText) -> Self {
                match name.as_str() {
                    $($text => Self::$Variant,)+
                    _ => Self::Other($crate::names::UnknownName::new(name)),
                }
            }
        }

        $crate::names::name_traits!($Enum);

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $Enum {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($Enum).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "oneOf": [$({
                    "description": concat!($($doc),+).trim(),
                    "type": "string",
                    "const": $text
                }),+] })
            }
        }
    };
}

pub(crate) use {name_traits, names};

#[cfg(test)]
mod tests {
    use crate::{Limit, foreign_text::ForeignText};

    #[test]
    fn a_declared_name_comes_back_and_an_unknown_one_is_kept_and_made_safe() {
        for limit in Limit::ALL {
            let text = serde_json::to_string(limit).unwrap();
            assert_eq!(text, format!("{:?}", limit.name()));
            assert_eq!(&serde_json::from_str::<Limit>(&text).unwrap(), limit);
        }
        let newer: Limit = serde_json::from_str(r#""moon\u001b[2J""#).unwrap();
        assert_eq!((newer.to_string(), newer.name()), ("moon?[2J".to_owned(), "moon?[2J"));
        assert!(matches!(newer, Limit::Other(_)));
        assert_eq!(Limit::from(ForeignText::from("link")), Limit::Link);
        serde_json::from_str::<Limit>("7").unwrap_err();
    }
}
