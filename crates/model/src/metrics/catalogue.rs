//! The form of an entry, and the macro that turns a definition into a typed constant and a row.

use std::marker::PhantomData;

use linerate_units::{Bitrate, Bytes, Ratio, Span};
use serde::Serialize;

use super::CATALOGUE;
use super::readings::MetricValue;

/// One metric as a row: the properties that tables, charts and schemas need.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct MetricEntry {
    /// The name in results, such as `tcp.srtt`.
    pub name: &'static str,
    /// Definition, discussion and issues: the documentation of the constant.
    pub doc: &'static str,
    /// Unit of the serialised number.
    pub unit: &'static str,
    /// Counter or gauge.
    pub kind: MetricKind,
    /// Which direction is better.
    pub better: Better,
    /// Standard or source.
    pub source: &'static str,
}

/// How values of a metric aggregate over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricKind {
    /// An amount per interval: values of intervals are added.
    Counter,
    /// A state at the end of the interval: values of intervals are not added.
    Gauge,
    /// A mean over the interval: several intervals have the time-weighted mean.
    Mean,
    /// The largest value in the interval: several intervals have the maximum.
    Peak,
}

/// Which direction is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Higher is better.
    Higher,
    /// Lower is better.
    Lower,
    /// Neither: the value explains a result but does not rate it.
    Neither,
}

/// A metric whose values are of type `Q`.
#[derive(Debug, Clone, Copy)]
pub struct Metric<Q> {
    name: &'static str,
    quantity: PhantomData<Q>,
}

impl<Q: MetricType> Metric<Q> {
    /// Used by the catalogue only.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, quantity: PhantomData }
    }

    /// The name in results.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

/// A type that can be the value of a metric.
pub trait MetricType: Copy {
    /// Unit of the serialised number.
    const UNIT: &'static str;
    /// The value as a number.
    fn to_value(self) -> MetricValue;
    /// The number as a value; absent if it is outside the range of the type.
    fn from_value(value: MetricValue) -> Option<Self>;
}

impl MetricType for u64 {
    const UNIT: &'static str = "1";

    fn to_value(self) -> MetricValue {
        MetricValue::Count(self)
    }

    fn from_value(value: MetricValue) -> Option<Self> {
        value.count()
    }
}

impl MetricType for Bytes {
    const UNIT: &'static str = "bytes";

    fn to_value(self) -> MetricValue {
        MetricValue::Count(self.get())
    }

    fn from_value(value: MetricValue) -> Option<Self> {
        value.count().map(Self::new)
    }
}

impl MetricType for Span {
    const UNIT: &'static str = "ns";

    fn to_value(self) -> MetricValue {
        MetricValue::Count(self.as_ns())
    }

    fn from_value(value: MetricValue) -> Option<Self> {
        value.count().map(Self::from_ns)
    }
}

impl MetricType for Bitrate {
    const UNIT: &'static str = "bit/s";

    fn to_value(self) -> MetricValue {
        MetricValue::Real(self.bps())
    }

    fn from_value(value: MetricValue) -> Option<Self> {
        Self::from_bps(value.real())
    }
}

impl MetricType for Ratio {
    const UNIT: &'static str = "ratio";

    fn to_value(self) -> MetricValue {
        MetricValue::Real(self.get())
    }

    fn from_value(value: MetricValue) -> Option<Self> {
        Self::new(value.real())
    }
}

/// The entry named `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static MetricEntry> {
    CATALOGUE.iter().flat_map(|entries| entries.iter()).find(|entry| entry.name == name)
}

/// Turns definitions into typed constants and the module's `ENTRIES`.
macro_rules! metrics {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty = $text:literal, $kind:ident, $better:ident, $source:literal;)+) => {
        $($(#[doc = $doc])+ pub const $name: $crate::metrics::Metric<$type> = $crate::metrics::Metric::new($text);)+

        /// The entries of this module.
        pub static ENTRIES: &[$crate::metrics::MetricEntry] = &[$($crate::metrics::MetricEntry {
            name: $text,
            doc: concat!($($doc, "\n"),+),
            unit: <$type as $crate::metrics::MetricType>::UNIT,
            kind: $crate::metrics::MetricKind::$kind,
            better: $crate::metrics::Better::$better,
            source: $source,
        }),+];
    };
}

pub(crate) use metrics;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_dotted_and_defined() {
        let mut seen = BTreeSet::new();
        for entry in CATALOGUE.iter().flat_map(|entries| entries.iter()) {
            assert!(seen.insert(entry.name), "{} occurs twice", entry.name);
            assert!(entry.name.contains('.') && entry.name == entry.name.to_lowercase(), "{}", entry.name);
            assert!(entry.doc.trim().len() > 20 && !entry.source.is_empty(), "{}", entry.name);
        }
        assert!(seen.len() > 30);
    }

    #[test]
    fn entries_are_found_by_name() {
        assert_eq!(find("tcp.srtt").unwrap().unit, "ns");
        assert!(find("tcp.nothing").is_none());
    }
}
