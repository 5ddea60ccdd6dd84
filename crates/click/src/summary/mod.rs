//! IP summary dumps: a line a packet, in fields that the file's `!data` line names (Click's FromIPSummaryDump).

pub mod field;
pub mod names;
pub mod options;
pub mod read;
