//! Limits the number of open event streams.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use linerate_sock::thread::locked;

use crate::access::group;
use crate::problem::{HttpProblem, TOO_MANY};

/// Most event streams.
const MAX_STREAMS: usize = 512;
/// Most event streams of one visitor. Programs on this host may be a proxy for many.
const MAX_PER_VISITOR: usize = 32;

/// The open event streams.
#[derive(Debug, Clone, Default)]
pub(crate) struct Viewers(Arc<Mutex<BTreeMap<IpAddr, usize>>>);

/// An open event stream; it is counted until this value is dropped.
#[derive(Debug)]
pub(crate) struct Viewer {
    viewers: Viewers,
    visitor: IpAddr,
}

impl Viewers {
    /// Counts a stream to a visitor.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn admit(&self, from: IpAddr) -> Result<Viewer, HttpProblem> {
        let visitor = group(from);
        let mut counts = locked(&self.0);
        let all: usize = counts.values().sum();
        let own = counts.get(&visitor).copied().unwrap_or(0);
        let limit = if all >= MAX_STREAMS {
            MAX_STREAMS
        } else if own >= MAX_PER_VISITOR && !visitor.is_loopback() {
            MAX_PER_VISITOR
        } else {
            counts.insert(visitor, own + 1);
            return Ok(Viewer { viewers: self.clone(), visitor });
        };
        Err(HttpProblem::new(TOO_MANY, format!("{limit} pages already watch; close one and try again"))
            .limit(limit as u64)
            .retry_after(10))
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let mut counts = locked(&self.viewers.0);
        if let Some(count) = counts.get_mut(&self.visitor) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.visitor);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_visitor_cannot_take_all_streams() {
        let viewers = Viewers::default();
        let address = |number: u8| IpAddr::from([192, 0, 2, number]);
        let held: Vec<Viewer> = (0..MAX_PER_VISITOR).map(|_| viewers.admit(address(1)).unwrap()).collect();
        assert_eq!(viewers.admit(address(1)).unwrap_err().limit, Some(MAX_PER_VISITOR as u64));
        drop(viewers.admit(address(2)).unwrap());
        drop(held);
        assert!(locked(&viewers.0).is_empty(), "nothing is remembered of those who left");
        let local: Vec<Viewer> =
            (0..MAX_STREAMS).map(|_| viewers.admit(IpAddr::from([127, 0, 0, 1])).unwrap()).collect();
        assert_eq!(viewers.admit(address(2)).unwrap_err().limit, Some(MAX_STREAMS as u64));
        drop(local);
        assert!(viewers.admit(address(2)).is_ok());
    }
}
