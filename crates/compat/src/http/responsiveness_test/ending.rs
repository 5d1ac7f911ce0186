//! The end of a stage and of the whole test: last counts, results, reasons.

use linerate_model::Direction;
use linerate_units::{Bitrate, Timestamp};

use super::stage::{handshakes, index};
use super::{RUN, ResponsivenessTest, STAGE_PAUSE, TestEnd, TestPhase};
use crate::stand_in::{FlowId, Output};

impl ResponsivenessTest {
    pub(super) fn print_progress(&mut self, now: Timestamp) {
        let TestPhase::Loading(stage) = &self.phase else { return };
        if !self.config.shows_progress {
            return;
        }
        let mut line = format!("{:>3.0} s", stage.elapsed(now).as_secs_f64());
        for (direction, bps) in stage.rates() {
            let rate = Bitrate::from_bps(bps).unwrap_or_default();
            line += &format!("  {} {rate}", direction.name());
        }
        let report = stage.report(now, &self.idle);
        let rpm = report.rpm.map_or("no answers yet".to_owned(), |rpm| format!("{rpm:.0} RPM"));
        line += &format!("  {rpm}  {} connections\n", stage.loads.len());
        self.out.push_back(Output::PrintError(line));
    }

    /// Ends a stage: no probe counts any more, and the connections are counted a last time.
    pub(super) fn end_stage(&mut self, now: Timestamp, end: Option<TestEnd>) {
        let TestPhase::Loading(mut stage) = std::mem::replace(&mut self.phase, TestPhase::Over) else {
            return;
        };
        let end = end.or_else(|| {
            let direction = stage.idle_direction()?.name();
            Some(TestEnd { trouble: format!("nothing was transferred in the {direction}"), code: 1 })
        });
        if stage.has_load() {
            self.reports.push(stage.report(now, &self.idle));
        }
        let fetches = std::mem::take(&mut stage.fetches).into_keys();
        self.out.extend(fetches.map(|link| Output::Close { link }));
        for direction in &stage.directions {
            self.handshakes[index(*direction)].extend(handshakes(&stage.foreign(), &stage.failed));
        }
        self.looking.clear();
        self.phase = TestPhase::Ending(stage, end);
        self.look(now);
        self.end_if_counted(now);
    }

    /// Goes on when the last counts of a stage were read.
    pub(super) fn end_if_counted(&mut self, now: Timestamp) {
        if !self.looking.is_empty() || !matches!(self.phase, TestPhase::Ending(..)) {
            return;
        }
        let TestPhase::Ending(stage, end) = std::mem::replace(&mut self.phase, TestPhase::Over) else {
            return;
        };
        for (link, load) in stage.loads {
            self.totals[index(load.direction)].add(load.reading());
            // What waits in the socket is not wanted.
            self.out.push_back(Output::Reset { link });
        }
        match (end, self.stages.is_empty()) {
            (Some(end), _) => self.finish(Some(end.trouble), end.code),
            (None, true) => self.finish(None, 0),
            (None, false) => self.phase = TestPhase::Pausing(now + STAGE_PAUSE),
        }
    }

    /// Ends the test with what was measured until now.
    pub(super) fn fail(&mut self, now: Timestamp, trouble: String) {
        self.stop(now, TestEnd { trouble, code: 1 });
    }

    pub(super) fn stop(&mut self, now: Timestamp, end: TestEnd) {
        match &mut self.phase {
            TestPhase::Loading(_) => self.end_stage(now, Some(end)),
            TestPhase::Ending(_, why) => *why = why.take().or(Some(end)),
            _ => self.finish(Some(end.trouble), end.code),
        }
    }

    /// The results, and the end of the program.
    pub(super) fn finish(&mut self, trouble: Option<String>, code: i32) {
        self.phase = TestPhase::Over;
        if let Some(trouble) = trouble.as_ref().filter(|_| !self.has_run) {
            self.out.push_back(Output::PrintError(format!("{trouble}\n")));
        }
        if self.has_run {
            let probes = handshakes(&self.idle, &self.idle_failed);
            self.out.push_back(Output::Latency { run: RUN, flow: None, probes });
            for direction in [Direction::Download, Direction::Upload] {
                let at = index(direction);
                let flow = FlowId(u16::try_from(at).unwrap_or_default());
                let Some(counted) = std::mem::take(&mut self.totals[at]).result(direction, true) else {
                    continue;
                };
                self.out.push_back(Output::Counted { run: RUN, flow, counted: Box::new(counted) });
                let probes = std::mem::take(&mut self.handshakes[at]);
                self.out.push_back(Output::Latency { run: RUN, flow: Some(flow), probes });
            }
            let reports = std::mem::take(&mut self.reports);
            self.out.extend(
                reports
                    .into_iter()
                    .map(|report| Output::Responsiveness { run: RUN, report: Box::new(report) }),
            );
            self.out.push_back(Output::RunOver { run: RUN, trouble });
        }
        self.out.push_back(Output::Exit(code));
    }
}
