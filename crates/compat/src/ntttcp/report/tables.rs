//! The tables of the Windows tool. KB and MB are binary here, mbps decimal.

use std::fmt::Write as _;

use super::NtttcpFigures;

/// The final output of the Windows tool. A figure that this system does not provide is 0, as in the original.
pub(in crate::ntttcp) fn tables(figures: &NtttcpFigures<'_>) -> String {
    let outcome = figures.outcome;
    let block = figures.options.block() as f64;
    let (bytes, rate, mega) = (figures.bytes as f64, figures.rate, figures.kilo().powi(2));
    let hidden = figures.options.windows.as_ref().is_some_and(|windows| windows.hides_threads);
    let mut text = String::new();
    if !hidden {
        text += "\nThread  Time(s) Throughput(KB/s) Avg B / Compl\n\
                 ======  ======= ================ =============\n";
    }
    for (thread, bytes) in outcome.threads.iter().enumerate().filter(|_| !hidden) {
        let rate = outcome.rate(*bytes) / figures.kilo();
        let _ = writeln!(text, "{thread:6} {:8.3} {rate:16.3} {block:13.3}", outcome.seconds);
    }
    let (sent, received) = figures.packets().unwrap_or((0, 0));
    let packets = sent.max(received);
    let frame = if packets == 0 { 0.0 } else { bytes / packets as f64 };
    text.push_str("\n#####  Totals:  #####\n\n");
    text.push_str("   Bytes(MEG)    realtime(s) Avg Frame Size Throughput(MB/s)\n");
    text.push_str("================ =========== ============== ================\n");
    let _ =
        writeln!(text, "{:16.6} {:11.3} {frame:14.3} {:16.3}\n", bytes / mega, outcome.seconds, rate / mega);
    text.push_str("Throughput(Buffers/s) Cycles/Byte       Buffers\n");
    text.push_str("===================== =========== =============\n");
    let cycles = figures.cycles_per_byte().unwrap_or(0.0);
    let _ = writeln!(text, "{:21.3} {cycles:11.3} {:13.3}\n", rate / block, bytes / block);
    text.push_str("DPCs(count/s) Pkts(num/DPC)   Intr(count/s) Pkts(num/intr)\n");
    text.push_str("============= ============= =============== ==============\n");
    let interrupts = outcome.rate(figures.interrupts().unwrap_or(0));
    let per_interrupt = figures.packets_per_interrupt().unwrap_or(0.0);
    let _ = writeln!(text, "{:13.3} {:13.3} {interrupts:15.3} {per_interrupt:14.3}\n", 0.0, 0.0);
    text.push_str("Packets Sent Packets Received Retransmits Errors Avg. CPU %\n");
    text.push_str("============ ================ =========== ====== ==========\n");
    let again = figures.retransmits().unwrap_or(0);
    let busy = figures.shares().map_or(0.0, |shares| (1.0 - shares.idle) * 100.0);
    let _ = write!(text, "{sent:12} {received:16} {again:11} {:6} {busy:10.3}", 0);
    text
}
