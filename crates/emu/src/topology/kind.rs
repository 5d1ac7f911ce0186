//! The kinds of values of keys: how each is parsed, its bounds, and its name.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::str::FromStr;

use linerate_config::{ConfigContent, ConfigTable, ConfigValue, check_name};
use linerate_units::{Bitrate, Bytes, ParseError, Ratio, Span, Timestamp};

use super::address;

/// Slower or faster rates are more likely typing errors.
const RATES: RangeInclusive<f64> = 1e3..=1e12;
const MAX_MEMORY: Bytes = Bytes::new(1 << 40);
const MAX_SPAN: Span = Span::from_secs(3600);

/// Sets a value in the description; the error names another setting without which the value has no effect.
pub(super) type FieldSetter<T, V> = fn(&mut T, V) -> Result<(), RequiredSetting>;

/// The setting that another one requires, as it would be written.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequiredSetting(pub(super) &'static str);

impl RequiredSetting {
    /// The key of that setting.
    pub(super) fn key(self) -> &'static str {
        self.0.split_once(' ').map_or(self.0, |(key, _)| key)
    }
}

/// Why a value was rejected.
#[derive(Debug)]
pub(super) enum RejectedValue {
    /// It is not a value of this kind: the text states what is wrong and what would be right.
    Wrong(String),
    /// Another setting is missing.
    Needs(RequiredSetting),
}

impl From<String> for RejectedValue {
    fn from(text: String) -> Self {
        Self::Wrong(text)
    }
}

impl fmt::Display for RejectedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong(text) => f.write_str(text),
            Self::Needs(RequiredSetting(other)) => {
                write!(f, "has no effect without {other}; add {other} or remove this key")
            }
        }
    }
}

/// The kind of a key's value, with the setter for a field of `T`.
pub(super) enum TopologyValueKind<T> {
    /// Free text of one line.
    Text(FieldSetter<T, String>),
    /// Lower-case letters, digits and hyphens.
    Name(FieldSetter<T, String>),
    /// Names of two nodes.
    Ends(FieldSetter<T, [String; 2]>),
    /// Any number of the words.
    Several(&'static [&'static str], FieldSetter<T, Vec<&'static str>>),
    /// One of the words.
    Choice(&'static [&'static str], FieldSetter<T, &'static str>),
    /// True or false.
    Flag(FieldSetter<T, bool>),
    /// A whole number between two bounds.
    Whole(u64, u64, FieldSetter<T, u64>),
    /// A number above zero.
    Factor(FieldSetter<T, f64>),
    /// A rate, or none.
    Rate(FieldSetter<T, Option<Bitrate>>),
    /// An amount of memory.
    Memory(FieldSetter<T, Bytes>),
    /// A span of time.
    Time(FieldSetter<T, Span>),
    /// Times since the start.
    Instants(FieldSetter<T, Vec<Timestamp>>),
    /// A share of the whole.
    Probability(FieldSetter<T, Ratio>),
    /// An IPv4 address with its prefix length.
    Address4(FieldSetter<T, (Ipv4Addr, u8)>),
    /// An IPv6 address with its prefix length.
    Address6(FieldSetter<T, (Ipv6Addr, u8)>),
    /// Kernel settings by name.
    Settings(FieldSetter<T, BTreeMap<String, String>>),
}

impl<T> TopologyValueKind<T> {
    /// Parses `value` and sets it in `target`.
    ///
    /// # Errors
    /// A text to print after the key's name: what is wrong and what would be right.
    pub(super) fn apply(&self, target: &mut T, value: &ConfigValue) -> Result<(), RejectedValue> {
        let done = match self {
            Self::Text(set) => set(target, text(value)?),
            Self::Name(set) => set(target, name(value)?),
            Self::Ends(set) => set(target, ends(value)?),
            Self::Several(words, set) => set(target, several(value, words)?),
            Self::Choice(words, set) => set(target, choice(value, words)?),
            Self::Flag(set) => set(target, flag(value)?),
            Self::Whole(from, to, set) => set(target, whole(value, *from, *to)?),
            Self::Factor(set) => set(target, factor(value)?),
            Self::Rate(set) => set(target, rate(value)?),
            Self::Memory(set) => set(target, memory(value)?),
            Self::Time(set) => set(target, span(value)?),
            Self::Instants(set) => set(target, instants(value)?),
            Self::Probability(set) => set(target, probability(value)?),
            Self::Address4(set) => set(target, address::parse_v4(required_text(value, ADDRESS4)?)?),
            Self::Address6(set) => set(target, address::parse_v6(required_text(value, ADDRESS6)?)?),
            Self::Settings(set) => set(target, settings(value)?),
        };
        done.map_err(RejectedValue::Needs)
    }

    /// The kind of the value, for the reference.
    pub(super) fn describe(&self) -> String {
        let quoted = |words: &[&str]| words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>();
        match self {
            Self::Text(_) => "text".to_owned(),
            Self::Name(_) => "name".to_owned(),
            Self::Ends(_) => "list of two names".to_owned(),
            Self::Several(words, _) => format!("list of some of {}", quoted(words).join(", ")),
            Self::Choice(words, _) => quoted(words).join(" or "),
            Self::Flag(_) => "`true` or `false`".to_owned(),
            Self::Whole(from, u64::MAX, _) => format!("whole number from {from}"),
            Self::Whole(from, to, _) => format!("whole number, {from} to {to}"),
            Self::Factor(_) => "number above 0".to_owned(),
            Self::Rate(_) => "rate or `\"none\"`".to_owned(),
            Self::Memory(_) => "amount of memory".to_owned(),
            Self::Time(_) => "time".to_owned(),
            Self::Instants(_) => "list of times".to_owned(),
            Self::Probability(_) => "probability".to_owned(),
            Self::Address4(_) => "IPv4 address with prefix length".to_owned(),
            Self::Address6(_) => "IPv6 address with prefix length".to_owned(),
            Self::Settings(_) => "table of names and values".to_owned(),
        }
    }
}

const ADDRESS4: &str = "an address such as \"10.77.0.1/24\"";
const ADDRESS6: &str = "an address such as \"fd77::1/64\"";

/// The text of a value, where text is required.
fn required_text<'v>(value: &'v ConfigValue, what: &str) -> Result<&'v str, String> {
    value.text().ok_or_else(|| expected(what, value))
}

fn expected(what: &str, value: &ConfigValue) -> String {
    format!("{} is not {what}", value.content.describe())
}

fn quantity<V: FromStr<Err = ParseError>>(value: &ConfigValue, what: &str) -> Result<V, String> {
    required_text(value, what)?.parse().map_err(|error: ParseError| error.to_string())
}

fn text(value: &ConfigValue) -> Result<String, String> {
    match &value.content {
        ConfigContent::Text(text) | ConfigContent::Typed(text) if !text.contains(char::is_control) => {
            Ok(text.clone())
        }
        ConfigContent::Text(_) | ConfigContent::Typed(_) => {
            Err("contains a control character; write one line".to_owned())
        }
        _ => Err(expected("a text in quotes", value)),
    }
}

fn name(value: &ConfigValue) -> Result<String, String> {
    let name = text(value)?;
    check_name(&name).map_err(|error| error.to_string())?;
    Ok(name)
}

/// The items of a list; separated by commas on the command line.
fn items<'v>(value: &'v ConfigValue, what: &str) -> Result<Vec<&'v str>, String> {
    match &value.content {
        ConfigContent::List(items) => items.iter().map(|item| required_text(item, what)).collect(),
        ConfigContent::Typed(typed) => Ok(typed.split(',').map(str::trim).collect()),
        _ => Err(expected(what, value)),
    }
}

fn ends(value: &ConfigValue) -> Result<[String; 2], String> {
    const EXPECTED: &str = "a list of two nodes such as [\"a\", \"s\"]";
    let ends = items(value, EXPECTED)?;
    let count = ends.len();
    let ends: [&str; 2] = ends.try_into().map_err(|_| format!("{count} ends are not {EXPECTED}"))?;
    Ok(ends.map(str::to_owned))
}

fn several(value: &ConfigValue, words: &'static [&'static str]) -> Result<Vec<&'static str>, String> {
    let what = format!("a list of some of {}", words.join(", "));
    let chosen = items(value, &what)?;
    if chosen.is_empty() {
        return Err(format!("the list is empty; write {what}"));
    }
    chosen.into_iter().map(|item| keyword(item, words)).collect()
}

fn choice(value: &ConfigValue, words: &'static [&'static str]) -> Result<&'static str, String> {
    keyword(required_text(value, &format!("one of {}", words.join(", ")))?, words)
}

fn keyword(typed: &str, words: &'static [&'static str]) -> Result<&'static str, String> {
    let known = words.iter().find(|word| **word == typed);
    known.copied().ok_or_else(|| format!("'{typed}' is unknown; choose from {}", words.join(", ")))
}

fn flag(value: &ConfigValue) -> Result<bool, String> {
    match &value.content {
        ConfigContent::Flag(flag) => Ok(*flag),
        ConfigContent::Typed(typed) if typed == "true" => Ok(true),
        ConfigContent::Typed(typed) if typed == "false" => Ok(false),
        _ => Err(expected("true or false", value)),
    }
}

fn whole(value: &ConfigValue, from: u64, to: u64) -> Result<u64, String> {
    let outside = || match to {
        u64::MAX => format!("{} is not a whole number from {from}", value.content.describe()),
        _ => format!("{} is not a whole number from {from} to {to}", value.content.describe()),
    };
    let number: u64 = value.text().and_then(|text| text.parse().ok()).ok_or_else(outside)?;
    if (from..=to).contains(&number) { Ok(number) } else { Err(outside()) }
}

fn factor(value: &ConfigValue) -> Result<f64, String> {
    let number: Option<f64> = value.text().and_then(|text| text.parse().ok());
    number
        .filter(|number| number.is_finite() && *number > 0.0)
        .ok_or_else(|| format!("{} is not a number above 0", value.content.describe()))
}

fn rate(value: &ConfigValue) -> Result<Option<Bitrate>, String> {
    if value.text() == Some("none") {
        return Ok(None);
    }
    let rate: Bitrate = quantity(value, "a rate such as \"100M\"")?;
    if RATES.contains(&rate.bps()) {
        return Ok(Some(rate));
    }
    Err(format!("{rate} is outside 1 kb/s to 1 Tb/s; write \"none\" for no limit"))
}

fn memory(value: &ConfigValue) -> Result<Bytes, String> {
    let bytes: Bytes = quantity(value, "an amount of memory such as \"64MB\"")?;
    if bytes <= MAX_MEMORY { Ok(bytes) } else { Err(format!("{bytes} is above {MAX_MEMORY}; use less")) }
}

fn span(value: &ConfigValue) -> Result<Span, String> {
    let span: Span = quantity(value, "a time such as \"25ms\"")?;
    if span <= MAX_SPAN { Ok(span) } else { Err(format!("{span} is above {MAX_SPAN}; use less")) }
}

fn instants(value: &ConfigValue) -> Result<Vec<Timestamp>, String> {
    const EXPECTED: &str = "a list of times such as [\"1s\", \"2.5s\"]";
    let instant = |text: &str| text.parse::<Span>().map_err(|error| error.to_string());
    let mut instants = items(value, EXPECTED)?
        .into_iter()
        .map(|text| Ok(Timestamp::START + instant(text)?))
        .collect::<Result<Vec<_>, String>>()?;
    instants.sort_unstable();
    Ok(instants)
}

fn probability(value: &ConfigValue) -> Result<Ratio, String> {
    let ratio: Ratio = quantity(value, "a probability such as 1e-4 or \"0.01%\"")?;
    if ratio.get() <= 1.0 {
        return Ok(ratio);
    }
    Err(format!("{ratio} is above 100 %; write a probability as 0 to 1, or as 0 to 100 with %"))
}

/// Kernel settings: `a.b = 1` as `"a.b" = 1`.
fn settings(value: &ConfigValue) -> Result<BTreeMap<String, String>, String> {
    let ConfigContent::Table(table) = &value.content else {
        return Err(expected("a table such as { \"ipv4.tcp_rmem\" = \"4096 131072 33554432\" }", value));
    };
    let mut settings = BTreeMap::new();
    flatten(table, "", &mut settings)?;
    Ok(settings)
}

fn flatten(table: &ConfigTable, prefix: &str, into: &mut BTreeMap<String, String>) -> Result<(), String> {
    for entry in &table.0 {
        let key = format!("{prefix}{}", entry.key);
        if let ConfigContent::Table(inner) = &entry.value.content {
            flatten(inner, &format!("{key}."), into)?;
            continue;
        }
        let right = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let parts = || key.split('.');
        if !key.chars().all(right) || parts().any(str::is_empty) || parts().count() < 2 {
            return Err(format!("'{key}' is not a setting below net.; write it like ipv4.tcp_rmem"));
        }
        let setting = required_text(&entry.value, &format!("a value for {key}"))?;
        if setting.is_empty() || setting.contains(char::is_control) {
            return Err(format!("the value of {key} is empty or contains a control character"));
        }
        into.insert(key, setting.to_owned());
    }
    Ok(())
}
