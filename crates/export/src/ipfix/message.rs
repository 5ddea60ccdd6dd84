//! One message: a header and sets (RFC 7011, section 3.1 to 3.3).

use super::template::Template;

/// The longest message, bytes: with the headers of IPv6 and UDP it fits a link of 1500 (RFC 7011, section 10.3.3).
pub const MOST: usize = 1400;
/// The version of the protocol.
const VERSION: u16 = 10;
/// The set of templates, and that of options' templates.
const TEMPLATES: u16 = 2;
const OPTIONS: u16 = 3;
const HEADER: usize = 16;
const SET: usize = 4;
/// The only observation domain: a run has one sequence of records.
const DOMAIN: u32 = 1;

/// A message that is being written.
#[derive(Debug)]
pub struct Message {
    bytes: Vec<u8>,
    /// where the last set begins, and its number
    set: Option<(usize, u16)>,
    records: u32,
}

impl Message {
    /// An empty one, behind so many records of data; `time` in seconds since the epoch.
    #[must_use]
    pub fn new(sequence: u32, time: u32) -> Self {
        let mut bytes = Vec::with_capacity(MOST);
        bytes.extend(VERSION.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(time.to_be_bytes());
        bytes.extend(sequence.to_be_bytes());
        bytes.extend(DOMAIN.to_be_bytes());
        Self {
            bytes,
            set: None,
            records: 0,
        }
    }

    fn begin(&mut self, id: u16) {
        if self.set.is_some_and(|(_, now)| now == id) {
            return;
        }
        self.end();
        self.set = Some((self.bytes.len(), id));
        self.bytes.extend(id.to_be_bytes());
        self.bytes.extend([0, 0]);
    }

    /// Writes the length of the last set.
    fn end(&mut self) {
        if let Some((from, _)) = self.set.take() {
            let length = (self.bytes.len() - from) as u16;
            if let Some(place) = self.bytes.get_mut(from + 2..from + 4) {
                place.copy_from_slice(&length.to_be_bytes());
            }
        }
    }

    /// Adds templates of flows.
    pub fn templates(&mut self, all: &[&Template]) {
        self.begin(TEMPLATES);
        self.bytes.extend(all.iter().flat_map(|t| t.definition()));
    }

    /// Adds templates of options.
    pub fn options(&mut self, all: &[&Template]) {
        self.begin(OPTIONS);
        self.bytes.extend(all.iter().flat_map(|t| t.definition()));
    }

    /// Adds a record of data; false where it has no room.
    pub fn add(&mut self, by: &Template, record: &[u8]) -> bool {
        if self.bytes.len() + SET + record.len() > MOST {
            return false;
        }
        self.begin(by.id);
        self.bytes.extend(record);
        self.records += 1;
        true
    }

    /// Whether it has no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == HEADER
    }

    /// Records of data in it.
    #[must_use]
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Its bytes; the records of data in it are counted on.
    pub fn done(mut self, sequence: &mut u32) -> Vec<u8> {
        self.end();
        *sequence = sequence.wrapping_add(self.records);
        let length = self.bytes.len() as u16;
        if let Some(place) = self.bytes.get_mut(2..4) {
            place.copy_from_slice(&length.to_be_bytes());
        }
        self.bytes
    }
}
