//! TAP devices: Ethernet interfaces whose other end is a file descriptor.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::SockError;
use crate::linux::call::{check, retry};

/// Bytes of the virtio-net header before every frame, in both directions (`virtio_net_hdr_mrg_rxbuf`).
pub const HEADER_BYTES: usize = 12;

const DEVICE: &str = "/dev/net/tun";

/// A TAP device, in the network namespace of the thread that created it.
///
/// Reads return what the kernel sends through the interface; the kernel receives what is written. Frames may be
/// GSO frames of up to 64 KiB, described by their virtio-net header. The interface outlives the descriptor and
/// then has no carrier.
#[derive(Debug)]
pub struct Tap {
    file: File,
    name: String,
    udp_segments: bool,
}

/// Why a TAP device could not be created.
#[derive(Debug, thiserror::Error)]
pub enum TapError {
    /// The kernel's driver, or the container's device node, is missing.
    #[error(
        "{DEVICE} does not exist; load the driver (`sudo modprobe tun`), or pass the device to the \
             container"
    )]
    NoDriver(#[source] io::Error),
    /// This user may not open the device file.
    #[error(
        "no permission to open {DEVICE}; run as root (`sudo`), or permit all users (`sudo chmod 666 \
         {DEVICE}`; permanently with a udev rule KERNEL==\"tun\", MODE=\"0666\")"
    )]
    NotOpened(#[source] io::Error),
    /// This user may not create interfaces in this network namespace.
    #[error(
        "no permission to create an interface in this network namespace; run as root, or with \
             CAP_NET_ADMIN in the namespace"
    )]
    NotPermitted(#[source] SockError),
    /// Any other error.
    #[error("the TAP device \"{name}\" could not be created")]
    Refused {
        /// Name of the interface.
        name: String,
        /// The refused call.
        source: SockError,
    },
}

impl Tap {
    /// Creates a TAP interface with this name in the network namespace of the calling thread. Reads and writes
    /// never block.
    ///
    /// # Errors
    /// The driver is missing, this user may not open the device file or lacks `CAP_NET_ADMIN`, or the name is
    /// in use.
    pub fn create(name: &str) -> Result<Self, TapError> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE);
        let file = file.map_err(|error| not_opened(name, error))?;
        let refused = |source: SockError| match source.raw_os_error() {
            Some(libc::EPERM) => TapError::NotPermitted(source),
            _ => TapError::Refused { name: name.to_owned(), source },
        };
        name_interface(&file, name).map_err(refused)?;
        let udp_segments = set_up(&file).map_err(refused)?;
        Ok(Self { file, name: name.to_owned(), udp_segments })
    }

    /// Name of the interface.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether UDP uses GSO frames too, as since Linux 6.2; TCP always does.
    #[must_use]
    pub fn has_udp_segments(&self) -> bool {
        self.udp_segments
    }

    /// Reads one frame with its header into `buffer`, which should hold [`HEADER_BYTES`], an Ethernet header
    /// and 64 KiB: longer frames are truncated. `None` if no frame is waiting.
    ///
    /// # Errors
    /// The interface no longer exists.
    pub fn read(&self, buffer: &mut [u8]) -> Result<Option<usize>, SockError> {
        let raw = self.file.as_raw_fd();
        let result = retry("read from a TAP", || {
            // SAFETY: pointer and length describe `buffer`, which is exclusively ours.
            unsafe { libc::read(raw, buffer.as_mut_ptr().cast(), buffer.len()) }
        });
        match result {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// As [`Tap::read`], into a buffer whose content is replaced by the frame. Avoids zeroing the `room` bytes
    /// before the kernel writes them. False if no frame is waiting.
    ///
    /// # Errors
    /// The interface no longer exists.
    pub fn read_into(&self, buffer: &mut Vec<u8>, room: usize) -> Result<bool, SockError> {
        buffer.clear();
        buffer.reserve_exact(room);
        let raw = self.file.as_raw_fd();
        let result = retry("read from a TAP", || {
            let spare = buffer.spare_capacity_mut();
            // SAFETY: pointer and length describe memory that is exclusively ours; it is only written to.
            unsafe { libc::read(raw, spare.as_mut_ptr().cast(), spare.len()) }
        });
        match result {
            Ok(length) => {
                // SAFETY: the kernel has written that many bytes, and never more than the length passed to it.
                unsafe { buffer.set_len(length) };
                Ok(true)
            }
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes one frame with its header, which the kernel receives.
    ///
    /// # Errors
    /// `EIO` while the interface is down, `EINVAL` if the header does not match the frame.
    pub fn write(&self, frame: &[u8]) -> Result<(), SockError> {
        let raw = self.file.as_raw_fd();
        retry("write to a TAP", || {
            // SAFETY: pointer and length describe `frame`.
            unsafe { libc::write(raw, frame.as_ptr().cast(), frame.len()) }
        })
        .map(|_| ())
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Why the device file could not be opened for an interface of that name.
fn not_opened(name: &str, error: io::Error) -> TapError {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => TapError::NoDriver(error),
        Some(libc::EACCES | libc::EPERM) => TapError::NotOpened(error),
        _ => TapError::Refused { name: name.to_owned(), source: SockError::new("open /dev/net/tun", error) },
    }
}

fn name_interface(file: &File, name: &str) -> Result<(), SockError> {
    const OP: &str = "create a TAP";
    // SAFETY: all zero is a valid ifreq (empty name, null pointers).
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(SockError::errno(OP, libc::EINVAL));
    }
    for (slot, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *slot = byte as libc::c_char;
    }
    // IFF_TUN_EXCL: an existing persistent TAP belongs to somebody else.
    let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR | libc::IFF_TUN_EXCL;
    request.ifr_ifru.ifru_flags = flags as i16;
    // SAFETY: `request` is a valid ifreq; the kernel reads and writes it.
    check(OP, unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) }).map(|_| ())
}

/// Sets the header size, offloads and persistence; true if GSO for UDP is among the offloads.
fn set_up(file: &File) -> Result<bool, SockError> {
    let raw = file.as_raw_fd();
    let header = HEADER_BYTES as i32;
    // SAFETY: the kernel reads one int.
    let ret = unsafe { libc::ioctl(raw, libc::TUNSETVNETHDRSZ, &raw const header) };
    check("set the header of a TAP", ret)?;
    let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
    let both = tcp | libc::TUN_F_USO4 | libc::TUN_F_USO6;
    let set = |op, number, value: libc::c_uint| {
        // SAFETY: both requests take a plain number instead of a pointer.
        check(op, unsafe { libc::ioctl(raw, number, libc::c_ulong::from(value)) })
    };
    let offload = "set the offloads of a TAP";
    let udp_segments = match set(offload, libc::TUNSETOFFLOAD, both) {
        Ok(_) => true,
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            set(offload, libc::TUNSETOFFLOAD, tcp)?;
            false
        }
        Err(error) => return Err(error),
    };
    set("make a TAP persistent", libc::TUNSETPERSIST, 1)?;
    Ok(udp_segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_is_missing_only_if_the_kernel_says_so() {
        let error = |errno| not_opened("eth0", io::Error::from_raw_os_error(errno));
        for absent in [libc::ENOENT, libc::ENODEV, libc::ENXIO] {
            assert!(error(absent).to_string().contains("modprobe tun"), "{absent}");
        }
        for forbidden in [libc::EACCES, libc::EPERM] {
            assert!(error(forbidden).to_string().contains("chmod 666"), "{forbidden}");
        }
        for other in [libc::EMFILE, libc::ENFILE, libc::ENOMEM] {
            let TapError::Refused { source, .. } = error(other) else { panic!("{other}") };
            assert_eq!(source.raw_os_error(), Some(other));
        }
    }
}
