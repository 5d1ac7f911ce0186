//! The fleet from outside: random histories with faults, and a model of the booking.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be prepared fails")]

mod agent_answers;
mod agent_faults;
mod agent_memory;
mod agent_messages;
mod agent_reports;
mod booking_model;
mod calendar_pages;
mod cancelled_runs;
mod coordinator;
mod engines;
mod histories;
mod played_fleet;
mod silent_agents;
mod simulated_agents;
mod simulated_fleet;
