//! Reading a capture of either format from a stream.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::pcap::Pcap;
use super::pcapng::Pcapng;
use super::source::Source;
use super::{Error, Head, Interface, Problem, Record};

enum Decoder {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

/// Packets of one capture, in the order of the file.
///
/// Memory is bounded whatever the capture contains: a window of 1 MiB and at most 65536 interfaces.
/// After the end, and after an error, there are no more packets.
///
/// ```no_run
/// let mut reader = millrace_traffic::capture::Reader::open("talk.pcap")?;
/// while let Some(record) = reader.next()? {
///     println!("{} {}", record.time_ns, record.data.len());
/// }
/// # Ok::<(), millrace_traffic::capture::Error>(())
/// ```
pub struct Reader {
    capture: String,
    source: Source,
    /// none until the header has been read
    decoder: Option<Decoder>,
    interfaces: Vec<Interface>,
    current: Option<Head>,
    packets: u64,
    ended: bool,
}

impl Reader {
    /// Opens the file at `path`; `-` is standard input.
    ///
    /// # Errors
    /// [`Problem::Open`], and those of [`Reader::new`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        if path.as_os_str() == "-" {
            return Self::new("standard input", io::stdin());
        }
        let name = path.display().to_string();
        // A directory opens and then cannot be read; said at once it is easier to understand.
        let opened = File::open(path).and_then(|file| match file.metadata()?.is_dir() {
            true => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            false => Ok(file),
        });
        match opened {
            Ok(file) => Self::new(name, file),
            Err(error) => Err(Error {
                capture: name,
                offset: 0,
                packets: 0,
                problem: Problem::Open(error),
            }),
        }
    }

    /// Reads a capture from a stream; `capture` names it in errors.
    ///
    /// # Errors
    /// [`Problem::Read`], [`Problem::Empty`], [`Problem::Compressed`], [`Problem::NotACapture`], or
    /// [`Problem::Truncated`] inside the file header.
    pub fn new(
        capture: impl Into<String>,
        read: impl Read + Send + 'static,
    ) -> Result<Self, Error> {
        let mut reader = Self::later(capture, read);
        match reader.begin() {
            Ok(()) => Ok(reader),
            Err(problem) => Err(reader.error(problem)),
        }
    }

    /// The same for a stream that is read when the first packet is asked for: what [`Reader::new`] finds
    /// wrong, the first step does.
    pub fn later(capture: impl Into<String>, read: impl Read + Send + 'static) -> Self {
        Self {
            capture: capture.into(),
            source: Source::new(Box::new(read)),
            decoder: None,
            interfaces: Vec::new(),
            current: None,
            packets: 0,
            ended: false,
        }
    }

    fn begin(&mut self) -> Result<(), Problem> {
        let (decoder, interfaces) = Self::start(&mut self.source)?;
        self.decoder = Some(decoder);
        self.interfaces = interfaces;
        Ok(())
    }

    fn error(&self, problem: Problem) -> Error {
        Error {
            capture: self.capture.clone(),
            offset: self.source.offset(),
            packets: self.packets,
            problem,
        }
    }

    fn start(source: &mut Source) -> Result<(Decoder, Vec<Interface>), Problem> {
        let there = source.fill(4).map_err(Problem::Read)?;
        let Some(&magic) = source.bytes().first_chunk::<4>() else {
            return Err(if there == 0 {
                Problem::Empty
            } else {
                Problem::NotACapture
            });
        };
        if Pcap::recognises(magic) {
            let (pcap, interface) = Pcap::open(source)?;
            return Ok((Decoder::Pcap(pcap), vec![interface]));
        }
        if Pcapng::recognises(magic) {
            return Ok((Decoder::Pcapng(Pcapng::default()), Vec::new()));
        }
        Err(match magic {
            [0x1f, 0x8b, ..] => Problem::Compressed("gzip"),
            [0x28, 0xb5, 0x2f, 0xfd] => Problem::Compressed("zstd"),
            [0xfd, b'7', b'z', b'X'] => Problem::Compressed("xz"),
            [b'B', b'Z', b'h', _] => Problem::Compressed("bzip2"),
            [0x04, 0x22, 0x4d, 0x18] => Problem::Compressed("lz4"),
            _ => Problem::NotACapture,
        })
    }

    /// The next packet; none at the end.
    ///
    /// # Errors
    /// Where the capture is damaged, truncated, unreadable, not Ethernet, or beyond the limits: once,
    /// after all packets before it.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator cannot lend its items"
    )]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        self.advance()?;
        Ok(self.record())
    }

    /// Steps to the next packet, which [`Reader::record`] then gives; false at the end.
    ///
    /// # Errors
    /// Those of [`Reader::next`]; and [`Problem::Read`] with [`io::ErrorKind::WouldBlock`] where the
    /// stream gives that, after which the step can be tried again: nothing is lost.
    pub fn advance(&mut self) -> Result<bool, Error> {
        if let Some(head) = self.current.take() {
            self.source.consume(head.length);
        }
        if self.ended {
            return Ok(false);
        }
        let found = match &mut self.decoder {
            Some(Decoder::Pcap(pcap)) => pcap.advance(&mut self.source),
            Some(Decoder::Pcapng(pcapng)) => pcapng.advance(&mut self.source, &mut self.interfaces),
            None => match self.begin() {
                Ok(()) => return self.advance(),
                Err(problem) => Err(problem),
            },
        };
        match found {
            Ok(Some(head)) => {
                self.current = Some(head);
                self.packets += 1;
                Ok(true)
            }
            Ok(None) => {
                self.ended = true;
                Ok(false)
            }
            Err(problem) => {
                let later = |e: &io::Error| e.kind() == io::ErrorKind::WouldBlock;
                self.ended = !matches!(&problem, Problem::Read(e) if later(e));
                Err(self.error(problem))
            }
        }
    }

    /// The packet that the last step reached.
    pub fn record(&self) -> Option<Record<'_>> {
        let head = self.current.as_ref()?;
        Some(Record {
            time_ns: head.time_ns,
            original_length: head.original_length,
            interface: head.interface,
            data: self.source.bytes().get(head.data.clone())?,
        })
    }

    /// The capture's name as given on opening.
    pub fn capture(&self) -> &str {
        &self.capture
    }

    /// Interfaces described so far, over all sections of a pcapng file; the one of a pcap file.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Packets delivered so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Bytes of the file stepped over so far, for progress.
    pub fn position(&self) -> u64 {
        self.source.offset()
    }
}
