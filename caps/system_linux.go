package caps

// madeUp is the directories that hold the system's view of itself: memory and
// descriptors of processes, devices, settings. A path in them can lead anywhere.
var madeUp = []string{"/proc", "/sys", "/dev"}
