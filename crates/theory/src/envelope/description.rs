//! Description of a path by values and ranges.

use linerate_units::{Bitrate, Ratio, Span};

use super::range::combined;
use super::{Hosts, Path, Questions, ValueRange};

/// A path of which some properties may be known only as ranges, or not at all.
#[derive(Debug, Clone, PartialEq)]
pub struct PathDescription {
    /// The exact properties. The fields below replace its link rate, RTT, loss and disk rate.
    pub exact: Path,
    /// Rate of the slowest link.
    pub link: ValueRange<Bitrate>,
    /// RTT without queues; absent if unknown. Windows, buffers, loss and a target need it.
    pub rtt: Option<ValueRange<Span>>,
    /// Loss events per packet; absent for none.
    pub loss: Option<ValueRange<Ratio>>,
    /// Rate of the slower disk; absent for no limit.
    pub disk: Option<ValueRange<Bitrate>>,
}

impl PathDescription {
    /// [`Path::gigabit`] with another link, and an unknown RTT.
    #[must_use]
    pub fn of_link(link: impl Into<ValueRange<Bitrate>>) -> Self {
        Self { exact: Path::gigabit(), link: link.into(), rtt: None, loss: None, disk: None }
    }

    /// The path, or one for each combination of the ends of its ranges, starting with all lower ends. An unknown
    /// RTT is that of [`Self::exact`].
    #[must_use]
    pub fn corners(&self) -> Vec<Path> {
        let exact =
            Path { loss: None, hosts: Hosts { disk_bps: None, ..self.exact.hosts }, ..self.exact.clone() };
        let all =
            combined(vec![exact], &self.link.ends(), |path, link| Path { link_bps: link.bps(), ..path });
        let all = or_same(all, self.rtt, |path, rtt| Path { rtt_s: rtt.as_secs_f64(), ..path });
        let lost = |loss: Ratio| Some(loss.get()).filter(|loss| *loss > 0.0);
        let all = or_same(all, self.loss, |path, loss| Path { loss: lost(loss), ..path });
        or_same(all, self.disk, |path, disk| {
            let hosts = Hosts { disk_bps: Some(disk.bps()), ..path.hosts };
            Path { hosts, ..path }
        })
    }

    /// Whether the path or the questions contain something that only a known RTT makes a limit.
    pub(super) fn needs_rtt(&self, questions: &Questions) -> bool {
        let path = &self.exact;
        let buffers = [path.window_bytes, path.rmem_max_bytes, path.wmem_max_bytes];
        let limited = self.loss.is_some() || buffers.iter().any(Option::is_some);
        !path.udp && (limited || questions.target.is_some())
    }
}

fn or_same<T: Copy + PartialOrd>(
    all: Vec<Path>,
    range: Option<ValueRange<T>>,
    with: impl Fn(Path, T) -> Path,
) -> Vec<Path> {
    match range {
        Some(range) => combined(all, &range.ends(), with),
        None => all,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gigabit() -> PathDescription {
        PathDescription::of_link("1G".parse::<Bitrate>().unwrap())
    }

    #[test]
    fn no_loss_is_no_ceiling() {
        let path = PathDescription { loss: Some(Ratio::default().into()), ..gigabit() };
        assert_eq!(path.corners()[0].loss, None);
    }

    #[test]
    fn ranges_have_a_corner_for_each_of_their_ends() {
        let path = PathDescription {
            rtt: ValueRange::between(Span::from_ms(20), Span::from_ms(25)),
            loss: ValueRange::between(Ratio::default(), Ratio::new(1e-4).unwrap()),
            disk: Some("60MB/s".parse::<Bitrate>().unwrap().into()),
            ..gigabit()
        };
        let found = path.corners();
        let seen: Vec<_> = found.iter().map(|path| (path.rtt_s, path.loss, path.hosts.disk_bps)).collect();
        let disk = Some(480e6);
        let wanted =
            [(0.02, None, disk), (0.02, Some(1e-4), disk), (0.025, None, disk), (0.025, Some(1e-4), disk)];
        assert_eq!(seen, wanted);
    }
}
