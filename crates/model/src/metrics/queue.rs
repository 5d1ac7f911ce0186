//! Data waiting in the sockets.

use linerate_units::{Bytes, Ratio};

use super::metrics;

metrics! {
    /// Payload in the send queue: never sent, or sent and not acknowledged.
    SND: Bytes = "queue.snd", Gauge, Neither, "tcp(7) SIOCOUTQ";
    /// Payload in the receive queue that the program has not read.
    RCV: Bytes = "queue.rcv", Gauge, Lower, "tcp(7) SIOCINQ";
    /// The same as a share of the receive buffer's payload capacity, about half of SO_RCVBUF.
    RCV_SHARE: Ratio = "queue.rcv_share", Gauge, Lower, "tcp(7) SIOCINQ, SO_RCVBUF";
    /// Memory of received segments that wait for a missing one, when the program has read everything before it.
    /// Discussion: it includes the kernel's own data of each packet, so it is an upper bound of the payload.
    RCV_HELD: Bytes = "queue.rcv_held", Gauge, Neither, "SO_MEMINFO SK_MEMINFO_RMEM_ALLOC";
}
