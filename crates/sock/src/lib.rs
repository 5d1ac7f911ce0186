//! Every system call, socket option and clock of linerate.
