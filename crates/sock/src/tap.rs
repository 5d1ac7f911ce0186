//! TAP devices: an Ethernet interface whose cable is a file descriptor.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::SockError;
use crate::call::{check, retry};

/// Bytes of the virtio-net header in front of every frame, both ways (`virtio_net_hdr_mrg_rxbuf`).
pub const HEADER_BYTES: usize = 12;

const DEVICE: &str = "/dev/net/tun";

/// A TAP device, in the network namespace of the thread that created it.
///
/// What the kernel sends through the interface is read here, what is written here the kernel receives. Frames may be
/// super-frames of up to 64 KiB, described by the virtio-net header in front of them. The interface outlives the
/// descriptor: without it, it is one whose cable was pulled.
#[derive(Debug)]
pub struct Tap {
    file: File,
    name: String,
    udp_segments: bool,
}

/// Why there is no TAP device.
#[derive(Debug, thiserror::Error)]
pub enum TapError {
    /// The kernel's driver, or the container's device node, is missing.
    #[error("there is no {DEVICE}; load the driver (`sudo modprobe tun`), or give the container that device")]
    NoDriver(#[source] io::Error),
    /// The device file is closed to this user.
    #[error(
        "{DEVICE} may not be opened; run as root (`sudo`), or open it to every user (`sudo chmod 666 {DEVICE}`; a udev \
         rule with KERNEL==\"tun\", MODE=\"0666\" makes that last)"
    )]
    NotOpened(#[source] io::Error),
    /// This user may not make interfaces in this network namespace.
    #[error("no interface may be made in this network namespace; run as root, or with CAP_NET_ADMIN in it")]
    NotPermitted(#[source] SockError),
    /// The kernel refused something else.
    #[error("the TAP device \"{name}\" could not be made")]
    Refused {
        /// Name of the interface.
        name: String,
        /// What was refused.
        source: SockError,
    },
}

impl Tap {
    /// Creates a TAP interface of that name in the network namespace of the calling thread. Reading and writing never
    /// wait.
    ///
    /// # Errors
    /// When the driver is missing, the device file is closed to this user, the user has no `CAP_NET_ADMIN`, or an
    /// interface has that name already.
    pub fn create(name: &str) -> Result<Self, TapError> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE);
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => TapError::NotOpened(error),
            _ => TapError::NoDriver(error),
        })?;
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

    /// True if UDP comes and goes in super-frames too, as since Linux 6.2; TCP always does.
    #[must_use]
    pub fn has_udp_segments(&self) -> bool {
        self.udp_segments
    }

    /// Reads one frame with its header into `buffer`, which should hold [`HEADER_BYTES`], an Ethernet header and 64 KiB:
    /// a longer frame is cut off. `None` when none is waiting.
    ///
    /// # Errors
    /// When the interface is gone.
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

    /// As [`Tap::read`], into a buffer that is emptied first and holds nothing but the frame afterwards: its memory need
    /// not be written before the kernel does. False when no frame is waiting.
    ///
    /// # Errors
    /// When the interface is gone.
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
                // SAFETY: the kernel has written that many bytes, and never more than there is room for.
                unsafe { buffer.set_len(length) };
                Ok(true)
            }
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes one frame with its header: the kernel receives it.
    ///
    /// # Errors
    /// `EIO` while the interface is switched off, `EINVAL` for a header that does not fit the frame.
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
    // IFF_TUN_EXCL: a persistent TAP that exists already is somebody's.
    let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR | libc::IFF_TUN_EXCL;
    request.ifr_ifru.ifru_flags = flags as i16;
    // SAFETY: `request` is a valid ifreq; the kernel reads and writes it.
    check(OP, unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) }).map(|_| ())
}

/// Header, offloads, persistence; true if UDP super-frames are among the offloads.
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
