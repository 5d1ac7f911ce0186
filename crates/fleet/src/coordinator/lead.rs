//! The lead: the lease in the calendar, and a clock that is right enough for it.

use linerate_model::calendar::UnixTime;
use linerate_units::Span;

use super::FleetCoordinator;
use crate::error::FleetError;

/// How long a lease lasts without being renewed. Another coordinator takes over after that.
pub const LEASE: Span = Span::from_secs(8);
/// How long before its end a lease is renewed.
const RENEW_BEFORE: Span = Span::from_secs(5);
/// What the clock of a coordinator may always be off.
const MOST_OFF: Span = Span::from_ms(500);

/// How right a clock is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockCheck {
    /// How far it is off at least.
    pub off: Span,
    /// How far it may be off.
    pub most: Span,
}

impl FleetCoordinator {
    /// How far the clock of this host is from that of the server of the calendar, as far as that can be told; absent if
    /// there is no such server. `clock` reads the clock of this host. A coordinator whose clock is off does not lead: it
    /// would book and start at other times than it says.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn check_clock(&mut self, clock: &dyn Fn() -> UnixTime) -> Result<Option<ClockCheck>, FleetError> {
        let before = clock();
        let server = self.calendar.server_clock()?;
        let after = clock();
        let Some(server) = server else { return Ok(None) };
        // The server's answer is of some moment in between.
        let off = server.since(after).max(before.since(server));
        let check = ClockCheck { off, most: self.most_off() };
        self.set_in_time(off <= check.most, after)?;
        Ok(Some(check))
    }

    /// Half of the time for settling is for clocks, and half of that for those of agents.
    fn most_off(&self) -> Span {
        let share = if self.centre.is_some() { 4 } else { 2 };
        Span::from_ns(self.inventory.settle.as_ns() / share).max(Span::from_ns(MOST_OFF.as_ns() * 2 / share))
    }

    /// Says whether the clock of this host is right. If it is not, another coordinator may lead at once; what is active
    /// here continues.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn set_in_time(&mut self, in_time: bool, now: UnixTime) -> Result<(), FleetError> {
        self.in_time = in_time;
        if let Some(epoch) = self.epoch.filter(|_| !in_time) {
            self.calendar.write(|calendar| calendar.release_lease(epoch))?;
            self.epoch = None;
            if let Some(seen) = &mut self.seen_lease {
                seen.until = UnixTime::from_ms(0);
            }
            self.lease_until = now;
        }
        Ok(())
    }

    /// Takes or renews the lease; its epoch, if this coordinator leads.
    pub(super) fn lead(&mut self, now: UnixTime) -> Result<Option<u64>, FleetError> {
        if !self.in_time {
            return Ok(None);
        }
        if self.epoch.is_some() && now.after(RENEW_BEFORE) < self.lease_until {
            return Ok(self.epoch);
        }
        // It has not heard anybody since its lease ended.
        let was_away = now >= self.lease_until;
        let (holder, seen) = (self.holder.clone(), self.seen_lease.clone());
        let until = now.after(LEASE);
        let lease =
            self.calendar.write(|calendar| calendar.acquire_lease(&holder, now, until, seen.as_ref()))?;
        self.seen_lease = Some(lease.clone());
        let epoch = Some(lease.epoch).filter(|_| lease.holder == self.holder);
        if was_away || epoch != self.epoch {
            self.hearing.begin_anew();
        }
        if epoch != self.epoch {
            // Another one may have described the fleet differently in the meantime.
            self.described = false;
            if let Some(centre) = &mut self.centre {
                centre.forget_handed();
            }
        }
        self.epoch = epoch;
        self.lease_until = lease.until;
        Ok(self.epoch)
    }
}
