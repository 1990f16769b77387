"""IR to IR: one public function per file, a verb; `pipeline.PIPELINE` says in which order."""
