//! LCS.
