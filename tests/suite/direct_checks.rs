//! What holds where everything is direct.

use serde_json::Value;

use crate::support::{items, number};

/// Everything direct and right: 43 patterns, three access methods, so many backends.
#[track_caller]
pub fn check_direct(result: &Value, backends: usize) {
    let patterns = items(&result["patterns"]);
    assert_eq!(patterns.len(), 43 * 3 * backends);
    for p in patterns {
        let what = format!("{} {} pattern {}", p["backend"], p["access"], p["pattern"]);
        assert_ne!(p["ended"]["by"], "not_run", "{what}: {}", p["ended"]);
        if number(&p["calls"]) > 0 {
            assert_eq!(p["direct"], true, "{what}: {}", p["strategy"]);
            assert!(p["strategy"].as_str().unwrap().contains("O_DIRECT"), "{what}: {}", p["strategy"]);
        }
        assert_eq!(p["verification"]["words_wrong"], 0, "{what}");
        assert_eq!(p["allocations_in_clock"], 0, "{what}");
    }
    for t in items(&result["types"]).iter().filter(|t| t["access"] != "read") {
        assert_eq!(t["full_verification"]["words_wrong"], 0, "{} {}", t["backend"], t["pattern_type"]);
    }
    assert_eq!(result["corruptions"], Value::Array(Vec::new()));
}
