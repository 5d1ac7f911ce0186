//! A test bed on one host: agents, coordinators and unrelated clients over loopback.
mod encrypted;
mod groups;
mod hosts;
mod limited_places;
mod places;
mod troubles;
