//! Adds up what flows move, for limits on amounts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use linerate_units::Bytes;

/// Payload that flows moved at this end, in both directions. A flow adds its own when it ends, however it ends.
///
/// ```
/// use std::sync::Arc;
/// use linerate_engine::ByteAccount;
/// use linerate_units::Bytes;
///
/// let all = Arc::new(ByteAccount::default());
/// let one = ByteAccount::within(&all);
/// one.add(Bytes::new(1500));
/// assert_eq!((one.total(), all.total()), (Bytes::new(1500), Bytes::new(1500)));
/// ```
#[derive(Debug, Default)]
pub struct ByteAccount {
    bytes: AtomicU64,
    /// The account of which this is a part.
    whole: Option<Arc<Self>>,
}

impl ByteAccount {
    /// An account whose bytes count in `whole` too.
    #[must_use]
    pub fn within(whole: &Arc<Self>) -> Self {
        Self { bytes: AtomicU64::new(0), whole: Some(Arc::clone(whole)) }
    }

    /// Adds what was moved.
    pub fn add(&self, moved: Bytes) {
        let add = |bytes: u64| Some(bytes.saturating_add(moved.get()));
        let _ = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        if let Some(whole) = &self.whole {
            whole.add(moved);
        }
    }

    /// The sum so far.
    #[must_use]
    pub fn total(&self) -> Bytes {
        Bytes::new(self.bytes.load(Ordering::Relaxed))
    }
}
