//! The ceiling ladder: every rate that one limit alone would allow, lowest first.

use linerate_model::Ceiling;

/// The lowest ceiling: the limiter to expect.
///
/// Domain: `None` for an empty ladder; a rate that is not a number never binds. Source: a flow is as fast as its tightest limit.
#[must_use]
pub fn binding(ceilings: &[Ceiling]) -> Option<&Ceiling> {
    ceilings
        .iter()
        .filter(|ceiling| ceiling.bitrate_bps.is_finite())
        .min_by(|a, b| a.bitrate_bps.total_cmp(&b.bitrate_bps))
}

/// The ceiling that binds once `limit` is remedied: what the change would give.
///
/// Domain: `None` when nothing else is known. Source: as [`binding`].
#[must_use]
pub fn after_remedy<'a>(ceilings: &'a [Ceiling], limit: &str) -> Option<&'a Ceiling> {
    ceilings
        .iter()
        .filter(|ceiling| ceiling.limit != limit && ceiling.bitrate_bps.is_finite())
        .min_by(|a, b| a.bitrate_bps.total_cmp(&b.bitrate_bps))
}
