//! Emulated networks: the effects of a cable, a queue, a shaper, a policer and a switch on packets.
//!
//! The stages are state machines: packets and time in, packets and deadlines out. A [`fabric`] connects them to
//! the network of hosts and switches that a [`topology`] describes. A caller with a clock drives it: the crate
//! `linerate-lab` in real time, with the frames of programs on this machine, or a TCP model in virtual time.
//! The same code and the same seed drop the same packets.
//!
//! There is no clock, no input or output, and no randomness except from a seed.
//!
//! ```
//! use linerate_emu::fabric::{Fabric, AttachmentPoint, Router};
//! use linerate_emu::frame::Frame;
//! use linerate_units::Timestamp;
//!
//! let text = r#"
//!     name = "cable"
//!     host.a = {}
//!     host.b = {}
//!     link.cable = { ends = ["a", "b"], rate = "100M", delay = "5ms" }
//! "#;
//! let topology = linerate_emu::topology::read(text, "cable.toml", &[]).unwrap();
//! let router = Router { mac: [2, 0, 0, 0, 0, 1], v4: [10, 0, 0, 1].into(), v6: 1.into() };
//! let mut fabric = Fabric::new(&topology, router);
//!
//! // A broadcast of 60 bytes, after the header of virtio-net (12 bytes of zeros).
//! let bytes = [&[0; 12][..], &[0xff; 6], &[2; 6], &[7; 48]].concat();
//! fabric.input(Timestamp::START, AttachmentPoint { host: 0, link: 0 }, Frame::parse(bytes).unwrap());
//! fabric.advance(Timestamp::from_ns(10_000_000));
//!
//! // With check sequence, preamble and gap it has 84 bytes: 6.72 µs at 100 Mb/s, then 5 ms.
//! let delivery = fabric.output().unwrap();
//! assert_eq!((delivery.attachment.host, delivery.at), (1, Timestamp::from_ns(5_006_720)));
//! ```

pub mod fabric;
pub mod frame;
pub mod link_direction;
pub mod packet_batch;
pub mod port;
pub mod stage;
pub mod topology;
