package quartz

const root = ""
