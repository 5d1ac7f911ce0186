//! Tickets with which browsers start tests: a page gets one from its service, and each is good for one test, for a
//! minute, from where it was got. So whoever wants tests has to come through the pages.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use linerate_sock::Mono;
use linerate_sock::thread::locked;

use crate::shares::{AddressGroup, Exhausted, Permit, Shares};

/// How long a ticket is valid.
const LIFETIME: Duration = Duration::from_secs(60);

/// Most valid tickets. One host gets half of them at most.
const MAX_TICKETS: usize = 4096;

/// Why there is no ticket.
#[derive(Debug, thiserror::Error)]
pub enum NoTicket {
    /// Too many are valid.
    #[error("{} tests were announced from {} and not started; try again in a minute", .0.taken, .0.group)]
    TooMany(Exhausted),
    /// The system gave no random numbers.
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
}

/// The tickets of a server.
#[derive(Debug)]
pub struct StartTickets {
    needed: AtomicBool,
    places: Arc<Shares>,
    valid: Mutex<HashMap<String, ValidTicket>>,
}

#[derive(Debug)]
struct ValidTicket {
    holder: IpAddr,
    until: Mono,
    _place: Permit,
}

impl StartTickets {
    pub(super) fn new() -> Arc<Self> {
        let places = Shares::new(MAX_TICKETS);
        Arc::new(Self { needed: AtomicBool::new(false), places, valid: Mutex::default() })
    }

    /// From now on, browsers need tickets. A server without pages has nobody who gives any.
    pub fn demand(&self) {
        self.needed.store(true, Ordering::Relaxed);
    }

    /// A new ticket for the visitor at this address: 32 hexadecimal digits.
    ///
    /// # Errors
    /// The visitor's host or network holds its share of tickets.
    pub fn issue(&self, holder: IpAddr, now: Mono) -> Result<String, NoTicket> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(NoTicket::Random)?;
        let mut valid = locked(&self.valid);
        valid.retain(|_, ticket| ticket.until > now);
        let place = self.places.take(holder).map_err(NoTicket::TooMany)?;
        let ticket = format!("{:032x}", u128::from_be_bytes(bytes));
        valid.insert(ticket.clone(), ValidTicket { holder, until: now + LIFETIME, _place: place });
        Ok(ticket)
    }

    /// Whether a test may start with this ticket, which is spent then.
    pub(super) fn redeem(&self, ticket: &str, from: Option<IpAddr>, now: Mono) -> bool {
        if !self.needed.load(Ordering::Relaxed) {
            return true;
        }
        let mut valid = locked(&self.valid);
        let of_sender = |held: &ValidTicket| {
            held.until > now && from.is_some_and(|from| may_be_one_browser(held.holder, from))
        };
        // A stranger does not spend the ticket of another.
        valid.get(ticket).is_some_and(of_sender) && valid.remove(ticket).is_some()
    }
}

/// Whether a browser at one address may have got its page at the other: they are in one network (/24, /56), of different
/// versions of IP, as a name may have both, or a proxy on this host has passed the page on.
fn may_be_one_browser(of_page: IpAddr, of_test: IpAddr) -> bool {
    let (of_page, of_test) = (of_page.to_canonical(), of_test.to_canonical());
    let same_version = of_page.is_ipv4() == of_test.is_ipv4();
    of_page.is_loopback() || !same_version || AddressGroup::site(of_page).contains(of_test)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Mono = Mono(1_000_000_000);

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn demanded() -> Arc<StartTickets> {
        let tickets = StartTickets::new();
        tickets.demand();
        tickets
    }

    #[test]
    fn a_ticket_is_for_one_test_within_a_minute() {
        let tickets = demanded();
        let issue = || tickets.issue(ip("192.0.2.1"), NOW).unwrap();
        let redeem = |ticket: &str, now| tickets.redeem(ticket, Some(ip("192.0.2.1")), now);
        let first = issue();
        assert!(redeem(&first, NOW) && !redeem(&first, NOW), "a second time");
        assert!(!redeem("0123456789abcdef0123456789abcdef", NOW), "one that nobody issued");
        let late = issue();
        assert!(!redeem(&late, NOW + LIFETIME));
        assert_ne!(first, late);
        assert!(StartTickets::new().redeem("anything", None, NOW), "without pages nobody gives tickets");
    }

    #[test]
    fn a_ticket_is_for_the_network_that_got_it() {
        let tickets = demanded();
        for (page, test, starts) in [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "::ffff:192.0.2.99", true),
            ("192.0.2.1", "192.0.3.1", false),
            ("2001:db8::1", "2001:db8:0:ff::1", true),
            ("2001:db8::1", "2001:db8:0:100::1", false),
            ("2001:db8::1", "192.0.2.1", true),
            ("127.0.0.1", "192.0.2.1", true),
        ] {
            let ticket = tickets.issue(ip(page), NOW).unwrap();
            assert_eq!(tickets.redeem(&ticket, Some(ip(test)), NOW), starts, "{page} {test}");
            assert_eq!(tickets.redeem(&ticket, Some(ip(page)), NOW), !starts, "a stranger spends nothing");
        }
        let ticket = tickets.issue(ip("192.0.2.1"), NOW).unwrap();
        assert!(!tickets.redeem(&ticket, None, NOW), "from an unknown address");
    }

    #[test]
    fn one_host_cannot_take_all_tickets_and_expired_ones_come_back() {
        let tickets = demanded();
        let mut taken = 0;
        while tickets.issue(ip("192.0.2.1"), NOW).is_ok() {
            taken += 1;
        }
        assert_eq!(taken, MAX_TICKETS / 2);
        assert!(tickets.issue(ip("198.51.100.1"), NOW).is_ok(), "another one gets some");
        assert!(tickets.issue(ip("192.0.2.1"), NOW + LIFETIME).is_ok());
        assert_eq!(locked(&tickets.valid).len(), 1);
        assert_eq!(tickets.places.taken(), 1);
    }
}
