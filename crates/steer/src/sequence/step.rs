//! The step of the sequencer.

use super::{FormError, LAST, MAX_CORES, MAX_GAP, MAX_ROW, Shape, TIME_BYTES};

/// Takes rows from frames.
pub trait Extract {
    /// Size of the rows.
    fn shape(&self) -> Shape;

    /// Writes the row of a frame that came by `port` at `time` (ns); false if it cannot touch state. `row` is zero and of the
    /// shape's size. Where the shape has a time, the sequencer sets it afterwards.
    fn extract(&self, frame: &[u8], port: u16, time: u64, row: &mut [u8]) -> bool;
}

impl<F: Fn(&[u8], u16, u64, &mut [u8]) -> bool> Extract for (Shape, F) {
    fn shape(&self) -> Shape {
        self.0
    }

    fn extract(&self, frame: &[u8], port: u16, time: u64, row: &mut [u8]) -> bool {
        self.1(frame, port, time, row)
    }
}

/// One row of the history.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// its number, from 1
    pub number: u64,
    /// time of its packet, ns; only the low 40 bits of it are in the bytes
    pub time: u64,
    /// of a heartbeat: nothing but its time counts
    pub beat: bool,
    bytes: [u8; MAX_ROW],
    length: u8,
}

impl Row {
    /// A row without content.
    pub(super) fn empty(shape: Shape, number: u64, time: u64, beat: bool) -> Self {
        Self {
            number,
            time,
            beat,
            bytes: [0; MAX_ROW],
            length: shape.row_bytes() as u8,
        }
    }

    /// The bytes, as they are on the wire.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or(&[])
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        let length = usize::from(self.length);
        self.bytes.get_mut(..length).unwrap_or(&mut [])
    }

    /// Writes the low 40 bits of its time where the shape has them.
    fn set_time(&mut self, shape: Shape) {
        let low = self.time.to_be_bytes();
        let place = shape.time().and_then(|at| self.bytes.get_mut(at..));
        if let (Some(place), Some(low)) = (place, low.last_chunk::<TIME_BYTES>()) {
            place.iter_mut().zip(low).for_each(|(p, b)| *p = *b);
        }
    }
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.beat { "beat" } else { "row" };
        write!(f, "{kind} {} at {}:", self.number, self.time)?;
        self.bytes().iter().try_for_each(|b| write!(f, " {b:02x}"))
    }
}

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Core {
    /// to one core
    One(u16),
    /// to each core, as a copy of its own
    All,
}

/// What a packet is to the history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It cannot touch state: no row.
    Plain,
    /// It has a row.
    Touch,
    /// There is no packet: a heartbeat.
    Beat,
}

/// What the sequencer says of one packet, or of a heartbeat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// number of its row, or of the last row before it; 0: none before it. Its core applies all rows up to it first.
    pub sequence: u64,
    /// its time, ns; never before that of an earlier one
    pub stamp: u64,
    /// where it goes
    pub core: Core,
    /// the port by which it came; 0 for heartbeats
    pub port: u16,
    /// whether there is a row
    pub kind: Kind,
}

/// All that a sequencer remembers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct State {
    cores: u16,
    period: u64,
    sequence: u64,
    /// of the last row, ns
    row_time: u64,
    /// of the last packet, ns
    stamp: u64,
    turn: u16,
    /// times that were before that of an earlier packet
    back: u64,
}

impl State {
    /// Before the first packet. `period`: a heartbeat comes so long after the last row, ns, at most 2^38 (4.6 minutes). A core
    /// that lost a row waits at most that long for a core that receives nothing.
    ///
    /// # Errors
    /// [`FormError::Cores`], [`FormError::Period`].
    pub fn new(cores: u16, period: u64) -> Result<Self, FormError> {
        if !(1..=MAX_CORES).contains(&cores) {
            return Err(FormError::Cores(cores));
        }
        if !(1..=MAX_GAP).contains(&period) {
            return Err(FormError::Period(period));
        }
        Ok(Self {
            cores,
            period,
            sequence: 0,
            row_time: 0,
            stamp: 0,
            turn: 0,
            back: 0,
        })
    }

    /// The same, as if `sequence` rows had been given by now, the last one at `time`: to go on from a sequencer that ended.
    #[must_use]
    pub fn after(mut self, sequence: u64, time: u64) -> Self {
        self.sequence = sequence;
        self.row_time = time;
        self.stamp = time;
        self
    }

    /// When the next heartbeat is due, ns; none before the first row, and none after the last time.
    #[must_use]
    pub fn due(&self) -> Option<u64> {
        let due = self.row_time.checked_add(self.period);
        due.filter(|_| self.sequence > 0)
    }

    /// Packets that came with a time before that of an earlier one. They count as of the earlier one's time.
    #[must_use]
    pub fn back(&self) -> u64 {
        self.back
    }

    /// Cores that packets are sprayed to.
    #[must_use]
    pub fn cores(&self) -> u16 {
        self.cores
    }

    /// How long after the last row a heartbeat comes, ns.
    #[must_use]
    pub fn period(&self) -> u64 {
        self.period
    }

    /// The number of the last row; 0: none yet.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
}

/// What a step takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival<'a> {
    /// a frame
    Packet {
        /// its bytes
        frame: &'a [u8],
        /// the port by which it came
        port: u16,
    },
    /// nothing: a heartbeat
    Idle,
}

/// A step that is not taken; the state is as before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StepError {
    /// A heartbeat has to come first.
    #[error("a heartbeat is due at {0} ns, before this packet")]
    Due(u64),
    /// There is no number left.
    #[error("row {LAST} was the last: start replicas and sequencer again")]
    Exhausted,
    /// A packet comes so long after the one before it that there are too many heartbeats between them.
    #[error(
        "a packet comes {gap} ns after the last row, which is {beats} heartbeats of one each {period} ns, and at most {most} are \
         sent in one go: check the time stamps, or let heartbeats come further apart (at most {max} ns)", most = MAX_BEATS, max = MAX_GAP
    )]
    Gap {
        /// since the last row, ns
        gap: u64,
        /// heartbeats in it
        beats: u64,
        /// between two of them, ns
        period: u64,
    },
}

/// The most heartbeats between two packets.
const MAX_BEATS: u64 = 65_536;

/// Takes one step: numbers what arrives at `time` (ns), says where it goes, and takes its row.
///
/// A packet without a row has the number of the last row before it, since it may read what rows have changed. Packets go to
/// cores in turn. A heartbeat is a row of its own, for all cores; before the first row there is none to wait for, but it is
/// numbered all the same.
///
/// # Errors
/// [`StepError::Due`], [`StepError::Exhausted`].
pub fn step(
    state: &mut State,
    rows: &impl Extract,
    arrival: Arrival<'_>,
    time: u64,
) -> Result<(Header, Option<Row>), StepError> {
    let stamp = time.max(state.stamp);
    let shape = rows.shape();
    let number = state.sequence.saturating_add(1);
    let mut row = Row::empty(shape, number, stamp, arrival == Arrival::Idle);
    let (core, port, kind) = match arrival {
        Arrival::Idle => (Core::All, 0, Kind::Beat),
        Arrival::Packet { frame, port } => {
            if let Some(due) = state.due().filter(|due| *due <= stamp) {
                return Err(StepError::Due(due));
            }
            match rows.extract(frame, port, stamp, row.bytes_mut()) {
                true => (Core::One(state.turn), port, Kind::Touch),
                false => (Core::One(state.turn), port, Kind::Plain),
            }
        }
    };
    if kind != Kind::Plain {
        if number > LAST {
            return Err(StepError::Exhausted);
        }
        row.set_time(shape);
        state.sequence = number;
        state.row_time = stamp;
    }
    if kind != Kind::Beat {
        state.turn = (state.turn + 1) % state.cores;
    }
    state.back += u64::from(time < state.stamp);
    state.stamp = stamp;
    let header = Header {
        sequence: state.sequence,
        stamp,
        core,
        port,
        kind,
    };
    Ok((header, (kind != Kind::Plain).then_some(row)))
}

/// Takes the steps of `packets` packets that come at one time (ns) and of which `rows` have a row, all at once; gives the number of the
/// last row before them. What it leaves is what that many calls of [`step`] leave.
///
/// # Errors
/// As [`step`]; none of the packets has a number then.
pub fn together(
    state: &mut State,
    (packets, rows): (u64, u64),
    time: u64,
) -> Result<u64, StepError> {
    let stamp = time.max(state.stamp);
    if packets == 0 {
        return Ok(state.sequence);
    }
    if let Some(due) = state.due().filter(|due| *due <= stamp) {
        return Err(StepError::Due(due));
    }
    let first = state.sequence;
    let last = first.checked_add(rows).filter(|last| *last <= LAST);
    state.sequence = last.ok_or(StepError::Exhausted)?;
    if rows > 0 {
        state.row_time = stamp;
    }
    let turn = u64::from(state.turn).wrapping_add(packets) % u64::from(state.cores);
    state.turn = turn as u16;
    if time < state.stamp {
        state.back += packets;
    }
    state.stamp = stamp;
    Ok(first)
}

/// A state and its rows: steps with the heartbeats that are due between packets.
#[derive(Clone, Debug)]
pub struct Sequencer<E> {
    state: State,
    rows: E,
}

impl<E: Extract> Sequencer<E> {
    /// Goes on from a state.
    pub fn new(state: State, rows: E) -> Self {
        Self { state, rows }
    }

    /// The state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Size of the rows.
    pub fn shape(&self) -> Shape {
        self.rows.shape()
    }

    /// The heartbeat that is due by `time`, if one is; for a sequencer that waits for packets.
    ///
    /// # Errors
    /// [`StepError::Exhausted`].
    pub fn beat(&mut self, time: u64) -> Result<Option<(Header, Row)>, StepError> {
        match self.state.due().filter(|due| *due <= time) {
            None => Ok(None),
            Some(due) => {
                let (header, row) = step(&mut self.state, &self.rows, Arrival::Idle, due)?;
                Ok(row.map(|row| (header, row)))
            }
        }
    }

    /// Gives the heartbeats that are due before a packet, and then the packet's step, to `to`.
    ///
    /// # Errors
    /// [`StepError::Gap`], [`StepError::Exhausted`]. Heartbeats that were due have been given before the latter.
    pub fn packet(
        &mut self,
        frame: &[u8],
        port: u16,
        time: u64,
        mut to: impl FnMut(Header, Option<Row>),
    ) -> Result<(), StepError> {
        let gap = time.saturating_sub(self.state.row_time);
        let beats = gap / self.state.period;
        if self.state.sequence > 0 && beats > MAX_BEATS {
            return Err(StepError::Gap {
                gap,
                beats,
                period: self.state.period,
            });
        }
        while let Some((header, row)) = self.beat(time)? {
            to(header, Some(row));
        }
        let arrival = Arrival::Packet { frame, port };
        let (header, row) = step(&mut self.state, &self.rows, arrival, time)?;
        to(header, row);
        Ok(())
    }
}
