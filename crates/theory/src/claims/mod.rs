//! Claims: whether a figure that somebody prints can be true, and what made it if not.
//!
//! A figure stands for every value that its digits allow; it is called impossible only when none of them can be. What is
//! not stated about the path is allowed to be whatever helps the figure.

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

use self::case::Case;
pub use self::context::Context;
pub use self::judgement::{Cause, CauseKind, Check, Judged, Judgement, Numbers, Reason, Verdict};
pub use self::quantity::name_and_unit;

/// Judges every figure of a test: by the link, by windows, by its own line and by the other lines.
///
/// `context` goes before what the file says of itself. A rate that a sender counted may exceed a ceiling by what socket
/// buffers hold, and is then doubtful; a rate without a side, as one typed, may not.
///
/// # Shape
/// One [`Judged`] for each line of the test, in their order, with one judgement for each of its figures.
///
/// # Source
/// RFC 6349 §3.3 and §4.1.1 (windows, framing), IEEE 802.3 (framing, 200 ppm for two clocks), Mathis 1997 and RFC 9438
/// (loss), RFC 5681 (slow start).
#[must_use]
pub fn judge(test: &ForeignTest, context: &Context) -> Vec<Judged> {
    let mut case = Case::new(test, context);
    case::domain(&mut case);
    link::check(&mut case);
    packets::check(&mut case);
    byte_accounting::check(&mut case);
    sums::check(&mut case);
    tcp::check(&mut case);
    clock::check(&mut case);
    case.judged()
}
