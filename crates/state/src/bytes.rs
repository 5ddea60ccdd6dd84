//! Numbers, texts and lists as bytes.

/// Bytes that no writer has written so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {what}")]
pub struct Malformed {
    /// where, from the first byte of what was read
    pub at: usize,
    /// what was wrong
    pub what: &'static str,
}

/// Appends a number, seven bits a byte, the least significant first.
pub fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends bytes behind their length.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads what was appended.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub fn at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub fn wrong(&self, what: &'static str) -> Malformed {
        Malformed { at: self.at, what }
    }

    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let end = self.at.checked_add(length);
        let taken = end.and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or_else(|| self.wrong("the content ends early"))?;
        self.at = self.at.saturating_add(length);
        Ok(taken)
    }

    pub fn byte(&mut self) -> Result<u8, Malformed> {
        self.take(1).map(|b| b.first().copied().unwrap_or_default())
    }

    pub fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return Err(self.wrong("a number of more than 64 bits"));
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.wrong("a number of more than 64 bits"))
    }

    /// A number that counts something of which each takes at least one byte that is still to come.
    pub fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.number()?;
        let left = self.bytes.len().saturating_sub(self.at) as u64;
        if count > left {
            return Err(self.wrong("a list that is longer than what is left"));
        }
        Ok(count as usize)
    }

    pub fn slice(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.count()?;
        self.take(length)
    }

    pub fn text(&mut self) -> Result<String, Malformed> {
        let bytes = self.slice()?;
        let text = std::str::from_utf8(bytes);
        text.map(str::to_owned)
            .map_err(|_| self.wrong("a name that is no text"))
    }

    /// A list; each of its parts takes at least one byte.
    pub fn list<T>(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.count()?;
        // Not allocated ahead: a part may take more memory than its bytes.
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(each(self)?);
        }
        Ok(all)
    }
}
