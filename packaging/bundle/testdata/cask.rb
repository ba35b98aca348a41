cask "drawbridge" do
  version "1.2.3"
  sha256 "abababababababababababababababababababababababababababababababab"

  url "https://example.test/v#{version}/Drawbridge-#{version}.zip"
  name "Drawbridge"
  desc "Lets a program drive this desktop under a person's eyes"
  homepage "https://example.test/about"

  depends_on macos: ">= :monterey"

  app "Drawbridge.app"
  binary "#{appdir}/Drawbridge.app/Contents/MacOS/drawbridge"

  uninstall launchctl: "io.github.drawbridge.Drawbridge",
            quit:      "io.github.drawbridge.Drawbridge"

  zap trash: [
    "~/Library/Application Support/Drawbridge",
    "~/Library/LaunchAgents/io.github.drawbridge.Drawbridge.plist",
    "~/Library/Logs/Drawbridge",
  ]
end
