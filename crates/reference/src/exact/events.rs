//! `perf_event_output`: the program's bytes and behind them the packet's, for the host.

use millrace_object::program::{ObjectId, StateObject};

use super::super::{Machine, Violation};
use super::{E2BIG, EFAULT, EINVAL, error};

const EOPNOTSUPP: i64 = 95;
/// The index that stands for this CPU's, which is 0.
const THIS_CPU: u64 = 0xffff_ffff;

impl Machine<'_> {
    pub(super) fn event(
        &mut self,
        id: ObjectId,
        object: &StateObject,
        arguments: [u64; 5],
    ) -> Result<u64, Violation> {
        let [_, _, flags, data, size] = arguments;
        let (index, frame) = (flags & THIS_CPU, flags >> 32);
        if frame >> 20 != 0 {
            return Ok(error(EINVAL));
        }
        let Some(behind) = self.packet_bytes().get(..frame as usize) else {
            return Ok(error(EFAULT));
        };
        let behind = behind.to_vec();
        let index = if index == THIS_CPU { 0 } else { index };
        if index >= object.capacity {
            return Ok(error(E2BIG));
        }
        if index != 0 {
            return Ok(error(EOPNOTSUPP));
        }
        let mut record = self.bytes_at(data, size as u32)?;
        record.extend(behind);
        // Addresses only grow, so that records stay in order.
        let at = self.map(Vec::new(), true, false);
        if let Some(exact) = &mut self.exact {
            exact.submitted.insert(at, (id, record));
        }
        Ok(0)
    }
}
