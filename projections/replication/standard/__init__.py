"""Links over the standard API: from any xRegistry server, whatever else it can do, and to one."""
