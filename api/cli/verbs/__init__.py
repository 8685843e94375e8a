"""The console command's verbs: one thin file each."""
