//! The standard streams of a stand-in.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};

use super::driver_event::{DriverEvent, reason};
use super::helper_threads::Helpers;

/// Bytes of standard input read at once.
const READ_BYTES: usize = 64 << 10;

/// Standard output, standard error and standard input. An embedded server has none of them.
#[derive(Default)]
pub(super) struct Console<'a> {
    /// Whether a user typed the command; only then may it write to named files.
    attended: bool,
    out: Option<&'a mut dyn Write>,
    complaints: Option<&'a mut dyn Write>,
    input: Option<Box<dyn Read + Send>>,
    blocks: Option<std::sync::mpsc::Sender<()>>,
}

impl<'a> Console<'a> {
    pub(super) fn new(
        out: &'a mut dyn Write,
        complaints: &'a mut dyn Write,
        input: Option<Box<dyn Read + Send>>,
    ) -> Self {
        Self { attended: true, out: Some(out), complaints: Some(complaints), input, blocks: None }
    }

    pub(super) fn print(&mut self, bytes: &[u8]) {
        if let Err(error) = put(&mut self.out, bytes) {
            self.print_error(&format!("linerate: the output could not be printed: {error}\n"));
        }
    }

    pub(super) fn print_error(&mut self, text: &str) {
        // An error of standard error cannot be reported anywhere.
        let _ = put(&mut self.complaints, text.as_bytes());
    }

    /// Writes to a file that the user named; returns an event if that fails. An embedded server writes no
    /// files.
    pub(super) fn write_file(&self, name: String, text: &str, append: bool) -> Option<DriverEvent> {
        if !self.attended {
            return None;
        }
        let mut how = OpenOptions::new();
        let file = how.create(true).write(true).append(append).truncate(!append).open(&name);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.err().map(|error| DriverEvent::NotWritten { name, reason: reason(&error) })
    }

    /// Requests the next block of input. A terminal or pipe may block, so a separate thread reads.
    pub(super) fn ask(&mut self, helpers: &Helpers) -> Option<DriverEvent> {
        if let Some(mut input) = self.input.take() {
            let (ask, asked) = std::sync::mpsc::channel();
            let post = helpers.post();
            let read = move || {
                while asked.recv().is_ok() {
                    let mut block = vec![0; READ_BYTES];
                    let count = read_some(input.as_mut(), &mut block);
                    block.truncate(count);
                    post.send(DriverEvent::Text((count > 0).then_some(block)));
                }
            };
            // The thread may block on a terminal forever; it ends with the program.
            if linerate_sock::thread::spawn("input", read).is_ok() {
                self.blocks = Some(ask);
            }
        }
        match self.blocks.as_ref().map(|ask| ask.send(())) {
            Some(Ok(())) => None,
            _ => Some(DriverEvent::Text(None)),
        }
    }
}

/// Prints; after a failure nothing more is printed. A closed pipe is not an error: the tool continues without
/// output. Any other failure is reported once.
fn put(to: &mut Option<&mut dyn Write>, bytes: &[u8]) -> io::Result<()> {
    let Some(writer) = to else { return Ok(()) };
    let written = writer.write_all(bytes).and_then(|()| writer.flush());
    if written.is_err() {
        *to = None;
    }
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Number of bytes read; 0 at the end of the input or after an error.
fn read_some(input: &mut dyn Read, block: &mut [u8]) -> usize {
    loop {
        match input.read(block) {
            Ok(count) => return count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A full device or a closed pipe.
    struct BrokenOutput(io::ErrorKind);

    impl Write for BrokenOutput {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_reported_once_and_a_closed_pipe_is_not() {
        for (kind, messages) in [(io::ErrorKind::StorageFull, 1), (io::ErrorKind::BrokenPipe, 0)] {
            let (mut out, mut complaints) = (BrokenOutput(kind), Vec::new());
            let mut console = Console::new(&mut out, &mut complaints, None);
            console.print(b"one\n");
            console.print(b"two\n");
            let output = String::from_utf8(complaints).unwrap();
            assert_eq!(output.matches("the output could not be printed").count(), messages, "{output}");
        }
    }
}
