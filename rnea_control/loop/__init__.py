"""The loop that answers joint states: their intake, the lease of the arm, the tick in machine code,
and the thread around it. Controller and sentinel are such loops."""
