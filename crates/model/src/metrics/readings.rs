//! Values of metrics: one number per metric of any type.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock};

use linerate_units::{Bitrate, Bytes, Span, Timestamp};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::catalogue::{Metric, MetricType};
use super::{CATALOGUE, flow};
use crate::foreign_text::ForeignText;

/// A number: an exact count, or a real number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricValue {
    /// An exact count.
    Count(u64),
    /// A real number, finite.
    Real(f64),
}

impl MetricValue {
    /// As a real number.
    #[must_use]
    pub const fn real(self) -> f64 {
        match self {
            Self::Count(count) => count as f64,
            Self::Real(real) => real,
        }
    }

    /// As a count; absent if it has a fraction.
    #[must_use]
    pub fn count(self) -> Option<u64> {
        match self {
            Self::Count(count) => Some(count),
            Self::Real(real) if real >= 0.0 && real.fract() == 0.0 && real < 9e15 => Some(real as u64),
            Self::Real(_) => None,
        }
    }
}

/// The values read at one moment or over one interval, by metric name. Values that were not measured are
/// absent.
///
/// Copies share their values: a record contains every sample of its log again, and a log can have a million.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Readings(Arc<Vec<(MetricName, MetricValue)>>);

/// A name from the catalogue, or one from a newer version.
type MetricName = Cow<'static, str>;

impl Readings {
    /// Stores a value.
    pub fn put<Q: MetricType>(&mut self, metric: Metric<Q>, value: Q) {
        insert(Arc::make_mut(&mut self.0), Cow::Borrowed(metric.name()), value.to_value());
    }

    /// Stores a value that may not have been measured.
    pub fn put_some<Q: MetricType>(&mut self, metric: Metric<Q>, value: Option<Q>) {
        if let Some(value) = value {
            self.put(metric, value);
        }
    }

    /// The value of a metric; absent if it was not measured.
    #[must_use]
    pub fn get<Q: MetricType>(&self, metric: Metric<Q>) -> Option<Q> {
        self.named(metric.name()).and_then(Q::from_value)
    }

    /// The value by name, as a number.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<MetricValue> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Every value, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, MetricValue)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), *value))
    }
}

/// Inserts a value at its place in name order, or replaces the existing value.
fn insert(values: &mut Vec<(MetricName, MetricValue)>, name: MetricName, value: MetricValue) {
    // Writers usually insert the names in order.
    if values.last().is_none_or(|(last, _)| *last < name) {
        return values.push((name, value));
    }
    match values.binary_search_by(|(known, _)| known.cmp(&name)) {
        Ok(at) => values[at].1 = value,
        Err(at) => values.insert(at, (name, value)),
    }
}

/// The name from the catalogue, so a long log does not store it once for each value.
fn known(name: &str) -> Option<&'static str> {
    static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        let mut names: Vec<&'static str> =
            CATALOGUE.iter().copied().flatten().map(|entry| entry.name).collect();
        names.sort_unstable();
        names
    });
    NAMES.binary_search(&name).ok().map(|at| NAMES[at])
}

/// An end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The end that writes.
    Sender,
    /// The end that reads.
    Receiver,
}

impl Side {
    /// The other end.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }
}

/// What one side of a flow counted in one interval.
///
/// Intervals end at absolute ticks counted from the side's first byte.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// Which end.
    pub side: Side,
    /// Start of the interval, from the side's first byte.
    pub start_ns: Timestamp,
    /// End of the interval.
    pub end_ns: Timestamp,
    /// Whether the interval is outside the measured part: omitted at the start, or tail.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
    /// What was read.
    pub readings: Readings,
}

impl Sample {
    /// Length of the interval.
    #[must_use]
    pub fn span(&self) -> Span {
        self.end_ns - self.start_ns
    }

    /// Bytes counted in the interval.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.readings.get(flow::BYTES).unwrap_or_default()
    }

    /// Bit rate over the interval; absent for an interval without length.
    #[must_use]
    pub fn bitrate(&self) -> Option<Bitrate> {
        Bitrate::of(self.bytes(), self.span())
    }
}

impl Serialize for Readings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Readings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Values;

        impl<'de> Visitor<'de> for Values {
            type Value = Readings;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("values by metric name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Readings, A::Error> {
                let mut values: Vec<(MetricName, MetricValue)> = Vec::new();
                while let Some((MetricNameKey(name), value)) = map.next_entry()? {
                    values.push((name, value));
                }
                // Sorted at once: inserting each would cost a peer nothing and this host seconds, if its names descend. Of
                // values with one name the last counts.
                values.reverse();
                values.sort_by(|one, other| one.0.cmp(&other.0));
                values.dedup_by(|other, first| other.0 == first.0);
                values.shrink_to_fit();
                Ok(Readings(Arc::new(values)))
            }
        }

        deserializer.deserialize_map(Values)
    }
}

/// A name, as read.
struct MetricNameKey(MetricName);

impl<'de> Deserialize<'de> for MetricNameKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MetricNameVisitor;

        impl Visitor<'_> for MetricNameVisitor {
            type Value = MetricNameKey;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a metric")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<MetricNameKey, E> {
                Ok(MetricNameKey(
                    known(name)
                        .map_or_else(|| Cow::Owned(ForeignText::new(name).into_string()), Cow::Borrowed),
                ))
            }
        }

        deserializer.deserialize_str(MetricNameVisitor)
    }
}

impl Serialize for MetricValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Count(count) => serializer.serialize_u64(count),
            Self::Real(real) => serializer.serialize_f64(real),
        }
    }
}

impl<'de> Deserialize<'de> for MetricValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MetricValueVisitor;

        impl Visitor<'_> for MetricValueVisitor {
            type Value = MetricValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a finite number")
            }

            fn visit_u64<E: de::Error>(self, count: u64) -> Result<MetricValue, E> {
                Ok(MetricValue::Count(count))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<MetricValue, E> {
                Ok(u64::try_from(number).map_or(MetricValue::Real(number as f64), MetricValue::Count))
            }

            fn visit_f64<E: de::Error>(self, real: f64) -> Result<MetricValue, E> {
                if real.is_finite() {
                    Ok(MetricValue::Real(real))
                } else {
                    Err(E::custom("not a finite number"))
                }
            }
        }

        deserializer.deserialize_any(MetricValueVisitor)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Readings {
    fn schema_name() -> Cow<'static, str> {
        "Readings".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "object",
            "description": "values by metric name; the metric reference has names, units and definitions",
            "additionalProperties": { "type": "number" }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{host, tcp};
    use linerate_units::Ratio;

    #[test]
    fn values_come_back_as_they_were_put() {
        let mut readings = Readings::default();
        readings.put(tcp::SRTT, Span::from_ns(21_000_000));
        readings.put(flow::BYTES, Bytes::new(u64::MAX));
        readings.put_some(host::BUSY, Ratio::new(0.5));
        readings.put_some(tcp::MIN_RTT, None);
        let json = serde_json::to_string(&readings).unwrap();
        assert!(json.contains(r#""tcp.srtt":21000000"#), "{json}");
        let back: Readings = serde_json::from_str(&json).unwrap();
        assert_eq!(back.get(flow::BYTES), Some(Bytes::new(u64::MAX)));
        assert_eq!(back.get(host::BUSY).unwrap().get(), 0.5);
        assert_eq!(back.get(tcp::MIN_RTT), None);
    }

    #[test]
    fn names_come_in_their_order_the_last_value_of_one_counts_and_unknown_ones_are_kept() {
        let json = r#"{"tcp.srtt":7,"flow.bytes":5,"zz.new":-1.5,"aa.new":2,"flow.bytes":6}"#;
        let readings: Readings = serde_json::from_str(json).unwrap();
        let back = serde_json::to_string(&readings).unwrap();
        assert_eq!(back, r#"{"aa.new":2,"flow.bytes":6,"tcp.srtt":7,"zz.new":-1.5}"#);
        assert_eq!(readings.named("zz.new"), Some(MetricValue::Real(-1.5)));
        assert_eq!(readings.get(tcp::SRTT), Some(Span::from_ns(7)));
        for wrong in [r#"{"flow.bytes":null}"#, r#"{"flow.bytes":"5"}"#, "[]", r#"{"flow.bytes":1e999}"#] {
            assert!(serde_json::from_str::<Readings>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_copy_is_its_own_once_it_is_written_to() {
        let mut one = Readings::default();
        one.put(flow::BYTES, Bytes::new(1));
        let mut other = one.clone();
        other.put(flow::BYTES, Bytes::new(2));
        assert_eq!(
            (one.get(flow::BYTES), other.get(flow::BYTES)),
            (Some(Bytes::new(1)), Some(Bytes::new(2)))
        );
        assert_ne!(one, other);
    }
}
