//! How often the layer allocates for a call that meets no limit.
//!
//! A bench of its own beside `overhead`: counting takes time, most where most
//! is allocated.

#[path = "support/stacks.rs"]
mod stacks;

use allocation_counter::AllocationInfo;
use tokio::runtime::Builder;

const CALLS: usize = 1_000;

fn main() {
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    println!("allocations a call beyond the bare service's\n");
    println!("{:<24}{:>8}{:>10}", "", "count", "bytes");
    let mut bare = AllocationInfo::default();
    for (name, method, mut call) in stacks::all(&runtime) {
        call(stacks::requests(&method, CALLS));
        let requests = stacks::requests(&method, CALLS);
        let counted = allocation_counter::measure(|| call(requests));
        if name == stacks::bare_of(name) {
            bare = counted;
        }
        println!(
            "{name:<24}{:>8.2}{:>10.1}",
            per_call(counted.count_total, bare.count_total),
            per_call(counted.bytes_total, bare.bytes_total),
        );
    }
}

fn per_call(total: u64, bare: u64) -> f64 {
    (total as f64 - bare as f64) / CALLS as f64
}
