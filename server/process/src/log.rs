//! The log, which is written to standard error without blocking requests.
//!
//! A lock and a system call for each line would cost a tenth of a response, and a reader that stops reading would stop
//! the service. So a separate thread writes lines in batches. On a terminal each line is written at once.

use std::{
    io::{self, IsTerminal as _, Write},
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc},
    time::Duration,
};

use tracing::{Level, Metadata};
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

use crate::json_lines::JsonLines;

/// Maximum age of a line before it is written, and therefore the longest part of the log that a killed process loses.
const MAX_LINE_AGE: Duration = Duration::from_millis(100);
/// Size of a batch that is written without waiting for its age: the lines of about 300 responses.
const FLUSH_BYTES: usize = 64 * 1024;
/// Maximum size of the lines held for a slow or stuck reader. Further lines are dropped and counted: the service
/// matters more than its log.
const MAX_BUFFER_BYTES: usize = 8 * 1024 * 1024;

/// Maximum time that a process waits for a stuck reader before it ends. After that, the rest of the log is lost: a
/// reader must not keep a server from stopping.
const LAST_WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// Starts the log: text for people at a terminal, JSON for machines. Dropping the guard writes the last lines.
pub(super) fn start() -> Option<FlushGuard> {
    // An invalid filter counts as unset.
    let filter = EnvFilter::try_from_env("PARCELO_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    // A line that cannot be written is lost. Its error would go to `eprintln!`, which panics in the middle of a
    // request if standard error is closed.
    let logs = tracing_subscriber::fmt().with_env_filter(filter).log_internal_errors(false);
    // If the process has a subscriber already, that one is kept.
    if io::stderr().is_terminal() {
        let _ = logs.with_writer(io::stderr).try_init();
        return None;
    }
    // If no thread can be started, each line is written separately.
    let Ok((buffer, flush)) = LogBuffer::start(io::stderr(), MAX_LINE_AGE) else {
        let _ = logs.event_format(JsonLines).with_writer(io::stderr).try_init();
        return None;
    };
    let _ = logs.event_format(JsonLines).with_writer(buffer).try_init();
    Some(flush)
}

/// The lines to be written.
#[derive(Clone)]
struct LogBuffer(Arc<SharedLines>);

#[derive(Default)]
struct SharedLines {
    lines: Mutex<Lines>,
    /// The signal for the first line, for [`FLUSH_BYTES`] of lines, for a warning or an error, and for the end.
    changed: Condvar,
}

#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    dropped: u64,
    is_urgent: bool,
    is_closed: bool,
}

/// A guard that writes the rest of the log when it is dropped.
pub(super) struct FlushGuard {
    buffer: LogBuffer,
    /// The channel that the writer closes when it has written everything.
    written: mpsc::Receiver<()>,
    timeout: Duration,
}

impl LogBuffer {
    fn start(
        out: impl Write + Send + 'static,
        max_age: Duration,
    ) -> io::Result<(Self, FlushGuard)> {
        let buffer = Self(Arc::default());
        let lines = buffer.clone();
        let thread = std::thread::Builder::new().name("log".to_owned());
        let (writes, written) = mpsc::channel();
        thread.spawn(move || {
            lines.write_to(out, max_age);
            drop(writes);
        })?;
        let flush = FlushGuard { buffer: buffer.clone(), written, timeout: LAST_WRITE_TIMEOUT };
        Ok((buffer, flush))
    }

    fn push(&self, line: &[u8], is_urgent: bool) {
        let mut lines = self.lock();
        if lines.bytes.len() + line.len() > MAX_BUFFER_BYTES {
            lines.dropped += 1;
            return;
        }
        let (was_empty, was_short) = (lines.bytes.is_empty(), lines.bytes.len() < FLUSH_BYTES);
        lines.bytes.extend_from_slice(line);
        lines.is_urgent |= is_urgent;
        let is_batch_full = was_short && lines.bytes.len() >= FLUSH_BYTES;
        drop(lines);
        // Not every line wakes the thread, which would cost more than the line.
        if was_empty || is_batch_full || is_urgent {
            self.0.changed.notify_one();
        }
    }

    /// Writes lines until the end.
    fn write_to(&self, mut out: impl Write, max_age: Duration) {
        let mut bytes = Vec::new();
        loop {
            let (dropped, is_closed) = self.wait_for_lines(&mut bytes, max_age);
            // If standard error is closed, there is no other place to report it.
            let _ = out.write_all(&bytes).and_then(|()| out.flush());
            bytes.clear();
            if dropped > 0 {
                tracing::warn!(dropped, "log lines were dropped: they are not read fast enough");
            }
            if is_closed {
                return;
            }
        }
    }

    /// Waits until there are lines, then until they are old or many enough. Returns the number of dropped lines, and
    /// `true` if these are the last.
    fn wait_for_lines(&self, bytes: &mut Vec<u8>, max_age: Duration) -> (u64, bool) {
        let is_idle = |lines: &mut Lines| lines.bytes.is_empty() && !lines.is_closed;
        let may_wait = |lines: &mut Lines| {
            lines.bytes.len() < FLUSH_BYTES && !lines.is_urgent && !lines.is_closed
        };
        let lines = self.0.changed.wait_while(self.lock(), is_idle);
        let lines = lines.unwrap_or_else(PoisonError::into_inner);
        let waited = self.0.changed.wait_timeout_while(lines, max_age, may_wait);
        let (mut lines, _) = waited.unwrap_or_else(PoisonError::into_inner);
        mem::swap(bytes, &mut lines.bytes);
        lines.is_urgent = false;
        (mem::take(&mut lines.dropped), lines.is_closed)
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        // A panic in another thread leaves only whole lines.
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FlushGuard {
    fn drop(&mut self) {
        self.buffer.lock().is_closed = true;
        self.buffer.0.changed.notify_one();
        let _ = self.written.recv_timeout(self.timeout);
    }
}

/// A writer of lines of one level.
struct LineWriter<'a> {
    buffer: &'a LogBuffer,
    is_urgent: bool,
}

impl<'a> MakeWriter<'a> for LogBuffer {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        LineWriter { buffer: self, is_urgent: false }
    }

    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> Self::Writer {
        // A warning or an error may be the last line of the process, so it is written at once.
        LineWriter { buffer: self, is_urgent: *meta.level() <= Level::WARN }
    }
}

impl Write for LineWriter<'_> {
    /// Buffers one line, because the subscriber passes whole lines.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.buffer.push(line, self.is_urgent);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Maximum age in tests, long enough that lines wait for more, or for the end.
    const NEVER: Duration = Duration::from_secs(3600);

    /// A pipe whose writes block until the test reads them.
    struct Pipe {
        written: Sender<String>,
        read: Receiver<()>,
    }

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.written.send(String::from_utf8(bytes.to_vec()).unwrap());
            // After the reader was dropped, every write succeeds.
            let _ = self.read.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Reader {
        lines: Receiver<String>,
        read: Sender<()>,
    }

    fn pipe() -> (Pipe, Reader) {
        let ((written, lines), (let_through, read)) = (channel(), channel());
        (Pipe { written, read }, Reader { lines, read: let_through })
    }

    #[test]
    fn lines_are_written_whole_in_order_and_many_at_once() {
        let (out, reader) = pipe();
        let (buffer, flush) = LogBuffer::start(out, NEVER).unwrap();
        buffer.push(b"first\n", true);
        assert_eq!(reader.lines.recv().unwrap(), "first\n");
        for line in 0..1000 {
            buffer.push(format!("{line}\n").as_bytes(), false);
        }
        drop(reader.read);
        drop(flush);
        let rest: Vec<String> = reader.lines.iter().collect();
        let lines: Vec<String> = rest.concat().lines().map(str::to_owned).collect();
        assert_eq!(lines, (0..1000).map(|line| line.to_string()).collect::<Vec<_>>());
        assert_eq!(rest.len(), 1, "a thousand short lines are one write");
    }

    #[test]
    fn lines_for_a_stuck_reader_are_dropped_without_blocking() {
        let (out, reader) = pipe();
        let (buffer, flush) = LogBuffer::start(out, NEVER).unwrap();
        buffer.push(b"stuck\n", true);
        reader.lines.recv().unwrap();
        let line = [b'x'; 1024];
        for _ in 0..MAX_BUFFER_BYTES / line.len() + 5 {
            buffer.push(&line, true);
        }
        assert_eq!(buffer.lock().dropped, 5);
        assert_eq!(buffer.lock().bytes.len(), MAX_BUFFER_BYTES);
        drop(reader.read);
        drop(flush);
        assert_eq!(reader.lines.iter().map(|text| text.len()).sum::<usize>(), MAX_BUFFER_BYTES);
    }

    #[test]
    fn a_stuck_reader_does_not_keep_a_process_from_ending() {
        let (out, reader) = pipe();
        let (buffer, mut flush) = LogBuffer::start(out, NEVER).unwrap();
        buffer.push(b"stuck\n", true);
        reader.lines.recv().unwrap();
        flush.timeout = Duration::ZERO;
        drop(flush);
        assert!(reader.lines.try_recv().is_err(), "nothing more could be written");
    }

    #[test]
    fn a_warning_is_written_at_once() {
        let (out, reader) = pipe();
        let (buffer, _flush) = LogBuffer::start(out, NEVER).unwrap();
        buffer.push(b"information\n", false);
        buffer.push(b"a warning\n", true);
        assert_eq!(reader.lines.recv().unwrap(), "information\na warning\n");
        drop(reader.read);
    }
}
