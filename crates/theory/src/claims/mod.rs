//! Claims: whether a printed figure can be true, and the cause if not.
//!
//! A figure represents every value that its digits allow. It is called impossible only if none of them is
//! possible. Properties of the path that are not stated are assumed in favour of the figure.

mod acceptance;
mod byte_accounting;
mod case;
mod causes;
mod clock;
mod context;
mod judgement;
mod link;
mod packets;
mod quantity;
mod range;
mod sums;
mod tcp;

use linerate_model::import::ForeignTest;

pub use self::acceptance::{Acceptance, AcceptanceCriterion, AcceptanceRule, AcceptanceState, accept};
use self::case::CheckedTest;
pub use self::context::Context;
pub use self::judgement::{CauseKind, Check, Judged, Judgement, Numbers, PossibleCause, Reason, Verdict};
pub use self::quantity::name_and_unit;

/// Checks every figure of a test against the link, windows, its own line and the other lines.
///
/// `context` overrides what the file states. A rate that a sender counted may exceed a ceiling by the size of
/// the socket buffers, and is then doubtful. A rate without a side, such as a typed one, may not.
///
/// # Shape
/// One [`Judged`] for each line of the test, in their order, with one judgement for each of its figures.
///
/// # Source
/// RFC 6349 §3.3 and §4.1.1 (windows, framing), IEEE 802.3 (framing, 200 ppm for two clocks), Mathis 1997 and
/// RFC 9438 (loss), RFC 5681 (slow start).
#[must_use]
pub fn judge(test: &ForeignTest, context: &Context) -> Vec<Judged> {
    let mut case = CheckedTest::new(test, context);
    case::domain(&mut case);
    link::check(&mut case);
    packets::check(&mut case);
    byte_accounting::check(&mut case);
    sums::check(&mut case);
    tcp::check(&mut case);
    clock::check(&mut case);
    case.judged()
}
