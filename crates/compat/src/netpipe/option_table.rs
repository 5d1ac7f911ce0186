//! The options of NPtcp 3.7.2.

use crate::option_table::ToolOption;

/// Every option.
pub(super) const OPTIONS: &[ToolOption] = &[
    ToolOption::acts(
        &["-h HOST"],
        &["-h", "192.0.2.2"],
        "host of the receiver; without -h, this end is the receiver",
    ),
    ToolOption::acts(&["-l SIZE"], &["-l", "64"], "smallest message size, bytes"),
    ToolOption::acts(&["-u SIZE"], &["-u", "4096"], "largest message size, bytes"),
    ToolOption::acts(
        &["-p N"],
        &["-p", "0"],
        "perturbation: also test sizes N bytes below and above each size",
    ),
    ToolOption::acts(&["-n N"], &["-n", "100"], "fixed number of messages per trial"),
    ToolOption::acts(&["-b BYTES"], &["-b", "65536"], "size of the send and receive socket buffers"),
    ToolOption::acts(&["-P PORT"], &["-P", "5102"], "port number"),
    ToolOption::acts(&["-o FILE"], &["-o", "points"], "output file for the measured points"),
    ToolOption::acts(&["-s"], &["-s"], "stream in one direction instead of ping-pong"),
    ToolOption::acts(&["-2"], &["-2"], "send in both directions at once"),
    ToolOption::acts(&["-r"], &["-r"], "open a new connection for every trial"),
    ToolOption::acts(&["-i"], &["-i"], "check the integrity of the data instead of measuring"),
    ToolOption::acts(&["-I"], &["-I"], "invalidate the cache: use memory that is not in any cache"),
    ToolOption::no_effect(&["-B"], &["-B"], "post all receives first; TCP has none to post, in NPtcp either"),
    ToolOption::no_effect(&["-O N[,M]"], &["-O", "8,8"], "buffer offsets: only printed"),
    ToolOption::refused(&["-A"], &["-A"], "Sockets Direct Protocol (InfiniBand)"),
    ToolOption::refused(&["-a"], &["-a"], "asynchronous receives, which NPtcp does not have either"),
];
