//! Both ends of a flow on loopback: what is written is read, counted once, and every order ends the flow.

mod ends;
mod many;
mod tcp;
mod udp;
mod zerocopy;
