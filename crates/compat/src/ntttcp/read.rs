//! Parser for output of NTttcp: the text of the Linux program, the tables of the Windows program, XML and JSON.
//!
//! KB and MB are decimal on Linux and binary on Windows.

mod document;
mod text;
mod windows;
mod xml;

pub(crate) use document::{is_document, read};
pub(crate) use text::NtttcpTextReader;

use linerate_model::Direction;
use linerate_model::import::{Claim, ControlEnd, ForeignTest};
use linerate_model::metrics::Side;

/// Sets what the role of the writer implies for a test: the sender connects.
fn describe(test: &mut ForeignTest, side: Side) {
    test.written_by = Some(if side == Side::Sender { ControlEnd::Client } else { ControlEnd::Server });
    test.spec.traffic.upload = true;
    for claim in &mut test.claims {
        claim.side = Some(side);
        claim.direction = Some(Direction::Upload);
    }
}

/// Adds a claim if it has figures.
fn put(test: &mut ForeignTest, claim: Claim) {
    if !claim.figures.is_empty() {
        test.claims.push(claim);
    }
}
