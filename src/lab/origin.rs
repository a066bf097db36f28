//! How a record came about that is written whole, at the end of a run.

use super::device::DeviceDescription;
use serde::{Deserialize, Serialize};

/// Where recorded scans and accounts of costs come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Version of the layout; another one is refused.
    pub format: u32,
    /// Of the program.
    pub tool_version: String,
    /// Of the program, if it knows.
    pub git_commit: Option<String>,
    /// RFC 3339 in UTC.
    pub date: String,
    /// As a user would type it.
    pub command: String,
    /// Where the scans ran.
    pub device: DeviceDescription,
}
