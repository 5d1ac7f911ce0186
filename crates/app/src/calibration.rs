//! The calibration of this host, with a warning for a file that cannot be used.

use linerate_model::Calibration;
use linerate_runner::calibration;

use crate::print;

/// The calibration of this host; absent if there is none that can be used.
pub(crate) fn stored() -> Option<Box<Calibration>> {
    calibration::stored().unwrap_or_else(|error| {
        print::warning(error);
        None
    })
}
