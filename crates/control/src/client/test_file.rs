//! What becomes of a received file after the test.

use std::fs::File;
use std::path::Path;

use linerate_model::{CaveatKind, Side};
use linerate_sock::clock;
use linerate_units::{Bitrate, Span};

use crate::log::Log;

/// Writing that takes longer than this share of the test is part of the answer.
const WORTH_SAYING: f64 = 0.05;

/// Writes to the disk what is still in memory of a received file, and tells the rate with that time if it differs.
pub(super) fn write_out(path: &Path, log: &mut Log<'_>) {
    let Some(flow) = log.record().flows.first() else { return };
    let received = flow.receiver_settings.as_ref().is_some_and(|settings| settings.file.is_some());
    let Some(tally) = flow.tally(Side::Receiver).filter(|_| received) else { return };
    let (number, bytes, elapsed) = (flow.plan.flow, tally.bytes, tally.elapsed);
    let began = clock::now();
    let written = File::open(path).and_then(|file| file.sync_data());
    let took = Span::from_ns(u64::try_from(clock::now().since(began).as_nanos()).unwrap_or(u64::MAX));
    let text = match written {
        Err(error) => format!("{bytes} were received, but the file is not safe on its disk: {error}"),
        Ok(()) if took.as_secs_f64() < WORTH_SAYING * elapsed.as_secs_f64() => return,
        Ok(()) => {
            let with = Bitrate::of(bytes, elapsed + took).map(|rate| rate.to_string()).unwrap_or_default();
            format!(
                "{bytes} were received in {elapsed}; writing to the disk what was still in memory took {took} more, and with \
                 that the rate is {with}"
            )
        }
    };
    log.warn(Some(number), CaveatKind::FileWrittenLate, text);
}
