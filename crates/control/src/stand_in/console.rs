//! Where a stand-in prints, and what it reads.

use std::fs::OpenOptions;
use std::io::{Read, Write};

use super::errands::Errands;
use super::news::{News, reason};

/// Bytes of standard input that are read at once.
const BLOCK: usize = 64 << 10;

/// Standard output, standard error and standard input. Inside a server there is none of them.
#[derive(Default)]
pub(super) struct Console<'a> {
    /// Whether somebody has typed the command, and with it the names of files.
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
        put(&mut self.out, bytes);
    }

    pub(super) fn complain(&mut self, text: &str) {
        put(&mut self.complaints, text.as_bytes());
    }

    /// Writes to a file that the user has named; tells when that fails. Inside a server nobody has named any.
    pub(super) fn write_file(&self, name: String, text: &str, append: bool) -> Option<News> {
        if !self.attended {
            return None;
        }
        let mut how = OpenOptions::new();
        let file = how.create(true).write(true).append(append).truncate(!append).open(&name);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.err().map(|error| News::NotWritten { name, reason: reason(&error) })
    }

    /// Asks for the next block of input. A terminal or a pipe may take its time: a thread waits for it.
    pub(super) fn ask(&mut self, errands: &Errands) -> Option<News> {
        if let Some(mut input) = self.input.take() {
            let (ask, asked) = std::sync::mpsc::channel();
            let post = errands.post();
            let read = move || {
                while asked.recv().is_ok() {
                    let mut block = vec![0; BLOCK];
                    let count = read_some(input.as_mut(), &mut block);
                    block.truncate(count);
                    post.send(News::Text((count > 0).then_some(block)));
                }
            };
            // It may wait for a terminal for ever: it ends with the program.
            if linerate_sock::thread::spawn("input", read).is_ok() {
                self.blocks = Some(ask);
            }
        }
        match self.blocks.as_ref().map(|ask| ask.send(())) {
            Some(Ok(())) => None,
            _ => Some(News::Text(None)),
        }
    }
}

/// Somebody may have closed the other end of a pipe: whoever prints goes on without a reader.
fn put(to: &mut Option<&mut dyn Write>, bytes: &[u8]) {
    if let Some(writer) = to
        && writer.write_all(bytes).and_then(|()| writer.flush()).is_err()
    {
        *to = None;
    }
}

/// Bytes read; none at the end, and where nothing can be read.
fn read_some(input: &mut dyn Read, block: &mut [u8]) -> usize {
    loop {
        match input.read(block) {
            Ok(count) => return count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return 0,
        }
    }
}
