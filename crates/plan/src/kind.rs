//! Kinds of values of keys and knobs: how each is read, and its name.

use std::fmt;

use linerate_config::{ConfigContent, ConfigValue, check_name};
use linerate_model::Dscp;
use linerate_units::{Bitrate, Bytes, ParseError, Ratio, Span};
use serde::{Serialize, Serializer};
use serde_json::json;

/// A value as it was set.
#[derive(Debug, Clone, PartialEq)]
pub enum SettingValue {
    /// The default, written `"default"`.
    Default,
    /// True or false.
    Flag(bool),
    /// A whole number.
    Whole(u64),
    /// A span of time.
    Time(Span),
    /// A rate.
    Rate(Bitrate),
    /// An amount of memory.
    Memory(Bytes),
    /// A share of the whole.
    Share(Ratio),
    /// The class of packets.
    Dscp(Dscp),
    /// Text.
    Text(String),
}

impl fmt::Display for SettingValue {
    /// The value in a form that can be read back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.pad(DEFAULT),
            Self::Flag(flag) => f.pad(if *flag { "true" } else { "false" }),
            Self::Whole(number) => f.pad(&number.to_string()),
            Self::Time(span) => f.pad(&span.exact()),
            Self::Rate(rate) => f.pad(&rate_text(*rate)),
            Self::Memory(bytes) => f.pad(&bytes.exact()),
            Self::Share(share) => f.pad(&share.exact()),
            Self::Dscp(dscp) => dscp.fmt(f),
            Self::Text(text) => f.pad(text),
        }
    }
}

impl Serialize for SettingValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A rate in the largest unit that keeps it a whole number.
fn rate_text(rate: Bitrate) -> String {
    let units = [("Gb/s", 1e9), ("Mb/s", 1e6), ("kb/s", 1e3)];
    let whole = units.iter().find(|(_, size)| rate.bps() >= *size && rate.bps() % size == 0.0);
    whole.map_or_else(|| rate.exact(), |(name, size)| format!("{}{name}", rate.bps() / size))
}

impl SettingValue {
    /// The value as in the specification's JSON; `None` for the default.
    pub(crate) fn json(&self) -> Option<serde_json::Value> {
        Some(match self {
            Self::Default => return None,
            Self::Flag(flag) => json!(flag),
            Self::Whole(number) => json!(number),
            Self::Time(span) => json!(span),
            Self::Rate(rate) => json!(rate),
            Self::Memory(bytes) => json!(bytes),
            Self::Share(share) => json!(share),
            Self::Dscp(dscp) => json!(dscp),
            Self::Text(text) => json!(text),
        })
    }

    /// The value as a number, in bit/s, bytes, nanoseconds or without a unit; `None` if it is not a number.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        Some(match self {
            Self::Whole(number) => *number as f64,
            Self::Time(span) => span.as_ns() as f64,
            Self::Rate(rate) => rate.bps(),
            Self::Memory(bytes) => bytes.get() as f64,
            Self::Share(share) => share.get(),
            Self::Dscp(dscp) => f64::from(dscp.get()),
            Self::Default | Self::Flag(_) | Self::Text(_) => return None,
        })
    }

    /// Whether the numbers of this kind are whole.
    pub(crate) const fn is_whole(&self) -> bool {
        match self {
            Self::Whole(_) | Self::Time(_) | Self::Memory(_) | Self::Dscp(_) => true,
            Self::Default | Self::Flag(_) | Self::Rate(_) | Self::Share(_) | Self::Text(_) => false,
        }
    }

    /// A value of the same kind with another number, rounded if the kind is integral; `None` if it is out of
    /// range.
    #[must_use]
    pub fn with_number(&self, number: f64) -> Option<Self> {
        let whole = || {
            let number = number.round();
            (number >= 0.0 && number < u64::MAX as f64).then_some(number as u64)
        };
        Some(match self {
            Self::Whole(_) => Self::Whole(whole()?),
            Self::Time(_) => Self::Time(Span::from_ns(whole()?)),
            Self::Rate(_) => Self::Rate(Bitrate::from_bps(number)?),
            Self::Memory(_) => Self::Memory(Bytes::new(whole()?)),
            Self::Share(_) => Self::Share(Ratio::new(number)?),
            Self::Dscp(_) => Self::Dscp(Dscp::try_from(u8::try_from(whole()?).ok()?).ok()?),
            Self::Default | Self::Flag(_) | Self::Text(_) => return None,
        })
    }
}

/// The word for a knob's default.
pub(crate) const DEFAULT: &str = "default";

/// The kind of a key's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanValueKind {
    /// Free text of one line.
    Text,
    /// Small letters, digits and hyphens.
    Name,
    /// One of the words.
    Choice(&'static [&'static str]),
    /// One of the words, which are determined at run time.
    Words(Vec<String>),
    /// True or false.
    Flag,
    /// A whole number between two bounds.
    Whole(u64, u64),
    /// A duration.
    Time,
    /// A rate.
    Rate,
    /// An amount of memory.
    Memory,
    /// A ratio.
    Share,
    /// The class of packets, as a number or by name.
    Dscp,
    /// Three sizes, as the kernel's `tcp_rmem` takes them.
    ThreeSizes,
    /// One text or several.
    Texts,
    /// Some of the flows, by name, separated by spaces.
    FlowNames(Vec<String>),
    /// A special value: its description for the reference, and its JSON Schema.
    Special(&'static str, &'static str),
}

impl PlanValueKind {
    /// Reads a value.
    ///
    /// # Errors
    /// A text to append to the key's name, with the mistake and the correct form.
    pub(crate) fn read(&self, value: &ConfigValue) -> Result<SettingValue, String> {
        let wrong = |what: &str| format!("{} is not {what}", value.content.describe());
        match self {
            Self::Text | Self::Texts | Self::Special(..) => text(value).map(SettingValue::Text),
            Self::Name => {
                let name = text(value)?;
                check_name(&name).map_err(|error| error.to_string())?;
                Ok(SettingValue::Text(name))
            }
            Self::Choice(words) => word(value, words.iter().copied()),
            Self::Words(words) => word(value, words.iter().map(String::as_str)),
            Self::Flag => match &value.content {
                ConfigContent::Flag(flag) => Ok(SettingValue::Flag(*flag)),
                ConfigContent::Typed(typed) if typed == "true" => Ok(SettingValue::Flag(true)),
                ConfigContent::Typed(typed) if typed == "false" => Ok(SettingValue::Flag(false)),
                _ => Err(wrong("true or false")),
            },
            Self::Whole(from, to) => {
                let range = match *to {
                    u64::MAX => format!("a whole number from {from}"),
                    to => format!("a whole number from {from} to {to}"),
                };
                let number = value.text().and_then(|text| text.parse::<u64>().ok());
                let number = number.filter(|number| (from..=to).contains(&number));
                number.map(SettingValue::Whole).ok_or_else(|| wrong(&range))
            }
            Self::Time => quantity(value, "a time such as \"25ms\"").map(SettingValue::Time),
            Self::Rate => quantity(value, "a rate such as \"100M\"").map(SettingValue::Rate),
            Self::Memory => quantity(value, "an amount of memory such as \"64K\"").map(SettingValue::Memory),
            Self::Share => quantity(value, "a share such as 1e-4 or \"1%\"").map(SettingValue::Share),
            Self::FlowNames(known) => {
                let text = text(value)?;
                let names: Vec<&str> = text.split_whitespace().collect();
                if let Some(unknown) = names.iter().find(|name| !known.iter().any(|one| one == *name)) {
                    let hint = linerate_config::hint(unknown, known.iter().map(String::as_str));
                    return Err(format!("there is no flow '{unknown}'{hint}"));
                }
                if names.is_empty() {
                    return Err("names no flow; write for example \"a b\"".to_owned());
                }
                Ok(SettingValue::Text(names.join(" ")))
            }
            Self::Dscp => {
                let text = value.text().ok_or_else(|| wrong("a DSCP such as \"ef\""))?;
                text.parse()
                    .map(SettingValue::Dscp)
                    .map_err(|error| format!("'{text}' is not a DSCP; {error}"))
            }
            Self::ThreeSizes => {
                let text = text(value)?;
                let sizes: Vec<Option<u64>> = text.split_whitespace().map(|size| size.parse().ok()).collect();
                let right = matches!(sizes[..], [Some(a), Some(b), Some(c)] if a <= b && b <= c);
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                right.then_some(SettingValue::Text(text)).ok_or_else(|| {
                    wrong("smallest, default and largest size in bytes, such as \"4096 131072 33554432\"")
                })
            }
        }
    }

    /// Reads a value that may also be `"default"`.
    pub(crate) fn read_or_default(&self, value: &ConfigValue) -> Result<SettingValue, String> {
        if value.text() == Some(DEFAULT) { Ok(SettingValue::Default) } else { self.read(value) }
    }

    /// Whether the values have an order, so that a range is possible.
    pub(crate) fn is_numeric(&self) -> bool {
        matches!(self, Self::Whole(..) | Self::Time | Self::Rate | Self::Memory | Self::Share | Self::Dscp)
    }

    /// Description of the value for the reference.
    pub(crate) fn describe(&self) -> String {
        let quoted = |words: &mut dyn Iterator<Item = &str>| {
            words.map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(" or ")
        };
        match self {
            Self::Text => "text".to_owned(),
            Self::Name => "name".to_owned(),
            Self::Choice(words) => quoted(&mut words.iter().copied()),
            Self::Words(words) => quoted(&mut words.iter().map(String::as_str)),
            Self::Flag => "`true` or `false`".to_owned(),
            Self::Whole(from, u64::MAX) => format!("whole number from {from}"),
            Self::Whole(from, to) => format!("whole number, {from} to {to}"),
            Self::Time => "time".to_owned(),
            Self::Rate => "rate".to_owned(),
            Self::Memory => "amount of memory".to_owned(),
            Self::Share => "share".to_owned(),
            Self::Dscp => "0 to 63, or a name such as `\"ef\"`".to_owned(),
            Self::ThreeSizes => "three sizes in one text".to_owned(),
            Self::Texts => "text, or list of texts".to_owned(),
            Self::FlowNames(_) => "names of flows".to_owned(),
            Self::Special(description, _) => (*description).to_owned(),
        }
    }
}

/// Text of one line.
fn text(value: &ConfigValue) -> Result<String, String> {
    match &value.content {
        ConfigContent::Text(text) | ConfigContent::Typed(text) if !text.contains(char::is_control) => {
            Ok(text.clone())
        }
        ConfigContent::Text(_) | ConfigContent::Typed(_) => {
            Err("contains a control character; write one line".to_owned())
        }
        _ => Err(format!("{} is not a text in quotes", value.content.describe())),
    }
}

fn word<'w>(
    value: &ConfigValue,
    words: impl Iterator<Item = &'w str> + Clone,
) -> Result<SettingValue, String> {
    let typed = text(value)?;
    if words.clone().any(|word| word == typed) {
        return Ok(SettingValue::Text(typed));
    }
    Err(format!("'{typed}' is unknown{}", linerate_config::hint(&typed, words)))
}

fn quantity<V: std::str::FromStr<Err = ParseError>>(value: &ConfigValue, what: &str) -> Result<V, String> {
    let text = value.text().ok_or_else(|| format!("{} is not {what}", value.content.describe()))?;
    text.parse().map_err(|error: ParseError| error.to_string())
}

/// One text or a list of texts, separated by commas on the command line.
///
/// # Errors
/// A text to append to the key's name.
pub fn texts(value: &ConfigValue) -> Result<Vec<String>, String> {
    match &value.content {
        ConfigContent::List(items) => items.iter().map(text).collect(),
        ConfigContent::Typed(typed) => Ok(typed.split(',').map(|item| item.trim().to_owned()).collect()),
        _ => text(value).map(|text| vec![text]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_config::SourcePosition;
    use proptest::prelude::*;

    fn typed(text: &str) -> ConfigValue {
        ConfigValue { at: SourcePosition::START, content: ConfigContent::Typed(text.to_owned()) }
    }

    #[test]
    fn values_obey_the_units_of_their_kind() {
        assert_eq!(PlanValueKind::Memory.read(&typed("64K")), Ok(SettingValue::Memory(Bytes::new(65_536))));
        assert_eq!(PlanValueKind::Rate.read(&typed("64K")).unwrap().number(), Some(64e3));
        assert_eq!(PlanValueKind::Time.read(&typed("21ms")), Ok(SettingValue::Time(Span::from_ms(21))));
        assert_eq!(PlanValueKind::Share.read(&typed("1%")).unwrap().number(), Some(0.01));
        assert!(PlanValueKind::Whole(1, 4).read(&typed("5")).unwrap_err().contains("1 to 4"));
        assert!(
            PlanValueKind::Choice(&["cross", "zip"]).read(&typed("cros")).unwrap_err().contains("'cross'")
        );
        assert_eq!(PlanValueKind::Whole(1, 4).read_or_default(&typed("default")), Ok(SettingValue::Default));
        assert!(PlanValueKind::ThreeSizes.read(&typed("4096 1 2")).is_err());
        assert_eq!(
            PlanValueKind::ThreeSizes.read(&typed("1  2 3")),
            Ok(SettingValue::Text("1 2 3".to_owned()))
        );
    }

    #[test]
    fn classes_of_packets_have_names() {
        let ef = SettingValue::Dscp("ef".parse().unwrap());
        assert_eq!(PlanValueKind::Dscp.read(&typed("EF")).as_ref(), Ok(&ef));
        assert_eq!(PlanValueKind::Dscp.read(&typed("46")).as_ref(), Ok(&ef));
        assert_eq!((ef.to_string().as_str(), ef.json()), ("ef", Some(json!(46))));
        assert_eq!(ef.with_number(8.0).unwrap().to_string(), "cs1");
        assert_eq!(ef.with_number(64.0), None);
        let error = PlanValueKind::Dscp.read(&typed("gold")).unwrap_err();
        assert_eq!(error, "'gold' is not a DSCP; give 0 to 63, ef, va, le, cs0 to cs7 or af11 to af43");
    }

    #[test]
    fn rates_are_printed_whole() {
        let shown = |bps| SettingValue::Rate(Bitrate::from_bps(bps).unwrap()).to_string();
        assert_eq!([1e9, 1.5e6, 1500.0, 0.0].map(shown), ["1Gb/s", "1500kb/s", "1500b/s", "0b/s"]);
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(number in 0_u64..1 << 50) {
            let bytes = SettingValue::Memory(Bytes::new(number));
            prop_assert_eq!(PlanValueKind::Memory.read(&typed(&bytes.to_string())), Ok(bytes));
            let span = SettingValue::Time(Span::from_ns(number));
            prop_assert_eq!(PlanValueKind::Time.read(&typed(&span.to_string())), Ok(span));
            let rate = SettingValue::Rate(Bitrate::from_bps(number as f64).unwrap());
            prop_assert_eq!(PlanValueKind::Rate.read(&typed(&rate.to_string())), Ok(rate));
        }
    }
}
