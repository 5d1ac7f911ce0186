//! When the streams of a flow are counted: at each progress report, and less often in a long flow, so that its log
//! stays small.

/// After this many counts, the reports between two of them double, and again after half as many.
const COUNTS: u32 = 240;

/// Selects the progress reports at which the streams of one flow are counted.
#[derive(Debug)]
pub(super) struct StreamWatch {
    /// Reports from one count to the next.
    every: u32,
    reports: u32,
    counted: u32,
}

impl StreamWatch {
    pub(super) const fn new() -> Self {
        Self { every: 1, reports: 0, counted: 0 }
    }

    /// Whether the streams are counted at this report.
    pub(super) const fn is_due(&mut self) -> bool {
        self.reports = self.reports.saturating_add(1);
        if self.reports < self.every {
            return false;
        }
        self.reports = 0;
        if self.counted >= COUNTS {
            self.counted = COUNTS / 2;
            self.every = self.every.saturating_mul(2);
        }
        self.counted = self.counted.saturating_add(1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_flow_is_counted_less_often_and_a_short_one_at_each_report() {
        let mut watch = StreamWatch::new();
        let mut counted_of = |reports: u32| (0..reports).filter(|_| watch.is_due()).count();
        // A minute, the next minute, and the rest of a day, at four reports a second.
        assert_eq!(counted_of(240), 240);
        assert_eq!(counted_of(240), 120);
        let rest = counted_of(86_400 * 4 - 480);
        assert!((960..1200).contains(&rest), "120 for each doubling: {rest}");
    }
}
