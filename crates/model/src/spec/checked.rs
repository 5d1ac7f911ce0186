//! A specification that hosts can carry out.

use std::ops::Deref;

use super::{SpecError, TestSpec};

/// A specification that has passed [`TestSpec::check`]. Code that sizes memory, threads, sockets and times
/// takes this type, so it never gets an unchecked specification from a file or another host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckedSpec(TestSpec);

impl TestSpec {
    /// The checked specification.
    ///
    /// # Errors
    /// As [`TestSpec::check`].
    pub fn checked(self) -> Result<CheckedSpec, SpecError> {
        self.check()?;
        Ok(CheckedSpec(self))
    }
}

impl CheckedSpec {
    /// The same without latency probes.
    #[must_use]
    pub fn without_latency(mut self) -> Self {
        self.0.traffic.no_latency = true;
        self
    }
}

impl Deref for CheckedSpec {
    type Target = TestSpec;

    fn deref(&self) -> &TestSpec {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::Bytes;

    #[test]
    fn only_what_passes_the_check_becomes_one_and_the_default_does() {
        assert_eq!(TestSpec::default().checked(), Ok(CheckedSpec::default()));
        let mut spec = TestSpec::default();
        spec.traffic.streams = 10_001;
        assert_eq!(spec.checked().unwrap_err().knob, "--parallel");
    }

    #[test]
    fn a_flow_has_blocks_as_asked_or_such_as_hosts_choose() {
        let fits = |udp: bool, asked: Option<u64>, length: u64| {
            let mut spec = TestSpec::default();
            (spec.traffic.udp, spec.traffic.length) = (udp, asked.map(Bytes::new));
            spec.traffic.check_length(Bytes::new(length)).is_ok()
        };
        assert!(fits(false, Some(64 << 20), 64 << 20) && fits(true, Some(32), 32));
        assert!(fits(false, None, 1) && fits(false, None, 1 << 20) && fits(true, None, 65_507));
        for (udp, asked, length) in [
            (false, Some(1), 1 << 40),
            (false, Some(2), 1),
            (false, None, 0),
            (false, None, (1 << 20) + 1),
            (true, None, 31),
            (true, None, 65_508),
            (true, Some(64), 65),
        ] {
            assert!(!fits(udp, asked, length), "{udp} {asked:?} {length}");
        }
    }
}
